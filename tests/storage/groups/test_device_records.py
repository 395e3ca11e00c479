"""The kernels of groups' words on a GPU: what they are given, and how they are compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.engines import missing
from warphash.runtime.abi import Accumulation, ValueType
from warphash.runtime.cuda import nvrtc
from warphash.runtime.devices import engine_for
from warphash.runtime.source import GROUP_RECORDS, translation_unit
from warphash.storage.groups.device_records import accumulate_on_gpu
from warphash.storage.groups.records import Column, Record, Word

MOST_OF_A_BLOCK = 6 << 10
"""Words that a block keeps in memory of its own."""


@pytest.mark.skipif(not nvrtc.installed(), reason="NVRTC is not installed")
@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
def test_kernels_keep_all_in_registers(arch: str) -> None:
    used = nvrtc.compile(translation_unit(GROUP_RECORDS, "cuda"), arch).usage()
    assert used.keys() == {"begin_records", "accumulate", "finish_records"}
    assert not any(each.spill_bytes for each in used.values())


@pytest.mark.skipif(bool(missing("emulated")), reason="needs the emulated engine")
@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("number", ["i4", "i8"])
@pytest.mark.parametrize("groups", [1, 3, 500, MOST_OF_A_BLOCK // 3, MOST_OF_A_BLOCK // 3 + 1, MOST_OF_A_BLOCK])
def test_several_words_by_numbers(blocks: int, number: str, groups: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Elements with a number that no group has are left out. A group without elements has the words of no values."""
    generator, engine, n = np.random.default_rng(groups), engine_for("emulated"), 9_000 * blocks
    monkeypatch.setattr(engine, "lanes", 512 * blocks)
    numbers = generator.integers(-1, groups + 1, n).astype(number)
    numbers[numbers == groups // 2] = -1
    values = generator.integers(-99, 99, n).astype("i2")
    held = [engine.from_host(array) for array in (numbers, values)]
    outs = [engine.allocate(8 * groups) for _ in range(3)]
    record = Record(
        (Column(held[1].ptr, ValueType.INT16),),
        (Word(Accumulation.SUM, 0), Word(Accumulation.COUNT, None), Word(Accumulation.MIN, 0)),
    )
    width = numbers.dtype.itemsize
    accumulate_on_gpu(engine, held[0].ptr, width, (n, groups), record, [out.ptr for out in outs], None)
    total, count, least = (engine.to_host(out.ptr, np.int64, groups) for out in outs)
    kept = (numbers >= 0) & (numbers < groups)

    def expected(operation: np.ufunc, first: Any, items: Any) -> Any:
        made = np.full(groups, first, np.int64)
        operation.at(made, numbers[kept], items[kept])
        return made

    assert np.array_equal(total, expected(np.add, 0, values))
    assert np.array_equal(count, expected(np.add, 0, np.ones(n, np.int64)))
    assert np.array_equal(least, expected(np.minimum, np.iinfo(np.int64).max, values))
