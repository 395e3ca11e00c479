"""How far the Python code of a call walks: one way through few files, as ARCHITECTURE.md tells it."""

from __future__ import annotations

from itertools import pairwise

import pytest

from support.walk import WALKS, walk


@pytest.mark.parametrize(
    ("name", "files", "changes"),
    [
        ("find", 8, 11),
        ("insert", 11, 22),
        ("insert into subtables", 10, 23),
        ("insert into quotients", 12, 27),
    ],
)
def test_a_call_walks_through_few_files(name: str, files: int, changes: int) -> None:
    made = WALKS[name]("cpu")
    assert made.files <= files and made.changes <= changes, f"{name}: {made}"


def test_a_find_goes_through_few_files_before_the_storage() -> None:
    files = [step.file for step in WALKS["find"]("cpu").steps]
    rooms = ("table/", "arrays/")
    assert {file for file in files if file.startswith(rooms)} == {
        *("table/maps.py", "table/lookups.py", "table/locks.py"),
        *("arrays/row_type.py", "arrays/adapters/numpy.py"),
    }
    changes = [(one, other) for one, other in pairwise(files) if one != other and other.startswith(rooms)]
    assert len(changes) <= 8, changes


def test_a_small_insert_into_quotients_on_a_gpu_goes_through_few_files_of_the_storage() -> None:
    """The files beside these are those of arrays in host memory, which go to a GPU and back."""
    steps = WALKS["insert into quotients"]("emulated").steps
    files = [step.file.removeprefix("storage/") for step in steps if step.file.startswith("storage/")]
    assert set(files) == {
        *("word_rows.py", "update/array_slots.py", "result_slot.py"),
        *("quotient/array.py", "quotient/route.py", "quotient/one_launch.py"),
    }
    changes = [(one, other) for one, other in pairwise(files) if one != other]
    assert len(changes) <= 6, changes


def test_a_walk_has_the_calls_of_the_package_in_their_order() -> None:
    found = WALKS["find"]("cpu")
    entered = [step.file for step in found.steps]
    assert entered[0] == "table/maps.py" and found.steps[0].function == "HashMap.find"
    assert "runtime/cpu.py" in entered and entered.index("runtime/cpu.py") > entered.index("storage/word_rows.py")
    assert found.files <= found.changes + 1 <= len(found.steps)
    assert (walk(int).files, walk(int).steps) == (0, ())
