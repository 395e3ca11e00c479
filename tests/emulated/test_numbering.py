"""Words are numbered right however the lanes of a GPU take turns, with an atomic for 16 bytes and without one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from emulated.scenarios import emulation, without_cas128
from support.planting import planted_among
from warphash.runtime.devices import engine_for
from warphash.settings import ORDER_VARIABLE
from warphash.storage.groups.numbering import number

Rewrite = Callable[[str], str]
N = 700


def first_wrong(rewrite: Rewrite, width: int, seed: int) -> str:
    """Number few keys that meet often, and say what is wrong in one schedule; empty if nothing is."""
    random = np.random.default_rng(seed)
    keys = random.integers(-1, random.integers(1, N), N).astype(f"i{width}")
    number_of: dict[int, int] = {}
    numbers = [number_of.setdefault(key, len(number_of)) for key in keys.tolist()]
    firsts = [numbers.index(each) for each in range(len(number_of))]
    counts = [numbers.count(each) for each in range(len(number_of))]
    with emulation(rewrite, seed):
        engine = engine_for("emulated")
        held, out = engine.from_host(keys), engine.allocate(8 * N)
        made = number(engine, held.ptr, width, N, numbers=out.ptr, counts=True)
        assert made.counts is not None
        answers = {
            "numbers": (engine.to_host(out.ptr, np.uint64, N).tolist(), numbers),
            "firsts": (engine.to_host(made.firsts.ptr, np.uint32, made.size).tolist(), firsts),
            "counts": (engine.to_host(made.counts.ptr, np.uint32, made.size).tolist(), counts),
        }
    return ", ".join(name for name, (made, right) in answers.items() if made != right)


@pytest.mark.parametrize("order", ["given", "parts"])
@pytest.mark.parametrize("rewrite", [str, without_cas128], ids=["swaps", "locks"])
@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize("seeds", [range(1, 6), pytest.param(range(6, 100), marks=pytest.mark.slow)], ids=str)
def test_no_schedule_breaks_it(
    seeds: range, width: int, rewrite: Rewrite, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ORDER_VARIABLE, order)
    assert [(seed, wrong) for seed in seeds if (wrong := first_wrong(rewrite, width, seed))] == []


BUGS = {
    "a later element stays the first one": ("&& first > element", "&& first == ~0u"),
    "a cell that another word has claimed counts as ours": ("if (before.low == probe.key) found", "found"),
    "the words before are counted with their own bit": ("(bit_of(element) - 1)", "(2 * bit_of(element) - 1)"),
    "a block keeps small counts": ("if (own[k]) atomic_add", "if (own[k] > 2) atomic_add"),
}


@pytest.mark.parametrize("name", BUGS)
def test_planted_bugs_are_seen(name: str) -> None:
    plant = planted_among("claim_words8", *BUGS[name])
    assert any(first_wrong(plant, 8, seed) for seed in range(1, 6))
