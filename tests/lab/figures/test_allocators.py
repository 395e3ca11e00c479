"""Tests of the allocator comparison: every allocator runs on every engine, and a unit taken twice is counted."""

from __future__ import annotations

import pytest

from support.engines import ENGINES, one_of_each
from warphash import ParameterError
from warphash.lab.bench.runner import Lab
from warphash.lab.figures import allocators
from warphash.lab.figures.allocators import ALLOCATORS, measure_allocator

N = {"cpu": 40_000, "emulated": 300, "cuda": 40_000}


@pytest.mark.parametrize("device", one_of_each(*ENGINES))
@pytest.mark.parametrize("name", ALLOCATORS)
def test_everybody_gets_a_unit(name: str, device: str) -> None:
    made = measure_allocator(Lab(device, repetitions=2), name, N[device])
    assert (made.allocator, made.n, made.mismatches) == (name, N[device], 0)
    assert made.rate_per_s == pytest.approx(made.n / made.seconds)


@pytest.mark.parametrize(("name", "bytes_of_an_address"), [("slab_allocator", 4), ("malloc", 8)])
def test_units_that_nobody_has_for_himself_are_counted(name: str, bytes_of_an_address: int) -> None:
    contestant = ALLOCATORS[name](allocators.engine_for("cpu"), 1000)
    contestant.take()
    assert contestant.mismatches() == 0
    engine, at = allocators.engine_for("cpu"), contestant._addresses.ptr
    kept = engine.to_host(at, f"u{bytes_of_an_address}", 1000)
    engine.copy(at, at + 500 * bytes_of_an_address, 10 * bytes_of_an_address)  # ten units are now taken twice
    assert contestant.mismatches() == 10
    engine.copy(at, kept.ctypes.data, kept.nbytes)
    assert contestant.mismatches() == 0
    contestant.give_back()


def test_who_is_no_allocator() -> None:
    with pytest.raises(ParameterError, match="no allocator 'halloc'; there are: slab_allocator, malloc"):
        measure_allocator(Lab("cpu"), "halloc", 10)
    with pytest.raises(ParameterError, match="are too many"):
        measure_allocator(Lab("cpu"), "slab_allocator", 1 << 30)
