"""How many files a lookup goes through before it is in the storage: as many as a reader has to open."""

from __future__ import annotations

import sys
from itertools import pairwise
from types import FrameType
from typing import Any

import numpy as np

from warphash import HashMap

ROOMS = ("table/", "arrays/")


def files_of_calls(call: Any) -> list[str]:
    """The file of ours that each call of Python code goes to, in order."""
    files: list[str] = []

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        _, found, name = frame.f_code.co_filename.rpartition("/warphash/")
        if event == "call" and found:
            files.append(name)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return files


def test_a_find_goes_through_few_files() -> None:
    keys = np.arange(10)
    table = HashMap.from_arrays(keys, keys, device="cpu")
    table.find(keys)
    files = files_of_calls(lambda: table.find(keys))
    entered = {file for file in files if file.startswith(ROOMS)}
    assert entered == {
        *("table/maps.py", "table/base.py", "table/locks.py"),
        *("arrays/row_type.py", "arrays/adapters/numpy.py"),
    }
    changes = [(one, other) for one, other in pairwise(files) if one != other and other.startswith(ROOMS)]
    assert len(changes) <= 8, changes
