"""The log of programs: what an engine hands out during a recording, once, and nothing from before or behind it."""

from __future__ import annotations

import numpy as np
import pytest

from support.engines import one_of_each
from warphash import HashMap
from warphash.runtime import program_log
from warphash.runtime.devices import engine_for
from warphash.runtime.source import ROWS


def programs(log: program_log.ProgramLog) -> list[tuple[str, str]]:
    return [(source.platform, source.program) for source in log.sources()]


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated", "cuda"))
def test_a_recording_has_the_programs_of_its_tables(device: str) -> None:
    keys = np.arange(100, dtype=np.uint32)
    HashMap.from_arrays(keys, keys, design="iceberg", device=device)
    with program_log.recorded() as log:
        for dtype in (np.uint32, np.uint64):  # two widths have one source
            HashMap.from_arrays(keys.astype(dtype), keys, design="cuckoo", device=device)
    HashMap.from_arrays(keys, keys, design="power_of_two", device=device)
    assert set(programs(log)) >= {(device, "cuckoo"), (device, "rows")}
    assert not {(device, "iceberg"), (device, "power_of_two")} & set(programs(log))
    assert len(set(programs(log))) == len(programs(log))


def test_recordings_may_lie_in_each_other() -> None:
    engine = engine_for("cpu")
    with program_log.recorded() as outer:
        with pytest.raises(ValueError, match="stop"), program_log.recorded() as inner:
            engine.program(ROWS)
            raise ValueError("stop")
        with program_log.recorded() as other:
            pass
    assert programs(outer) == programs(inner) == [("cpu", "rows")] and programs(other) == []
    engine.program(ROWS)
    assert not program_log._open
