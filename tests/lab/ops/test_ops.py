"""Operations beside other libraries: every installed contestant is right, and the oracles count wrong answers."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from warphash import get_num_threads
from warphash.errors import DeviceError, ParameterError
from warphash.lab.bench.runner import Lab
from warphash.lab.ops import OPS, chosen, inputs, run
from warphash.lab.ops.base import Call, Op, OpsConfig, Shape
from warphash.lab.ops.libraries import LIBRARIES, Library, installed

ROWS = 1_500
VERSIONS, _ = installed("cpu")
NAMES = list(OPS)


def measured(
    op: Op, rows: int = ROWS, left_out: dict[str, str] | None = None, lab: Lab | None = None, key: str = "int64"
) -> list[run.OpRate]:
    lab = lab or Lab("cpu", repetitions=1)
    return list(run.measure(lab, [op], OpsConfig(rows, key), VERSIONS, {} if left_out is None else left_out))


@pytest.mark.parametrize("key", ["int64", "uint32"])
@pytest.mark.parametrize("name", NAMES)
def test_every_installed_library_is_right(name: str, key: str) -> None:
    op, left_out = OPS[name], dict[str, str]()
    rates = measured(op, left_out=left_out, key=key)
    assert not left_out
    assert {rate.mismatches for rate in rates} == {0}
    assert all(rate.rows_per_s * rate.seconds_per_call == pytest.approx(rate.rows) for rate in rates)
    assert {rate.threads for rate in rates} == {get_num_threads()}
    rivals = [rival for rival in op.rivals if rival.partition(" ")[0] in VERSIONS]
    contestants = list(dict.fromkeys(rate.contestant for rate in rates))
    ours = len(contestants) - len(rivals)
    assert contestants[ours:] == rivals and all(who.startswith("warphash") for who in contestants[:ours])
    assert ours == len(set(op.ours_on) & set(VERSIONS)) >= 1
    shapes = [(rate.rows, rate.distinct) for rate in rates if rate.contestant == contestants[0]]
    assert shapes[-1] == (10, 5) and shapes[:2] == [(ROWS, 1_000), (ROWS, ROWS)]


def answers(name: str, call: Call, library: Library, first: Any, shape: Shape) -> tuple[list[Any], Any]:
    """The columns of an answer, and the function that counts its wrong ones."""
    op, config = OPS[name], OpsConfig(ROWS)
    tables = op.draw(shape, config)
    held = [library.held(table) for table in tables]
    return library.columns(call.read(first, call.run(first, *held))), op.oracle(*tables)


def shape_of(name: str) -> Shape:
    return Shape(ROWS, 100, "scattered", OPS[name].hit_shares[0])


@pytest.mark.parametrize("who", ["torch", "warphash"])
@pytest.mark.parametrize("name", [name for name, op in OPS.items() if "torch" in op.rivals])
def test_the_calls_on_tensors_are_right(name: str, who: str) -> None:
    """On tensors of the CPU. The calls are those of a GPU."""
    pytest.importorskip("torch")
    library = LIBRARIES["torch"]("cpu")
    call, first = (OPS[name].ours, library) if who == "warphash" else (OPS[name].rivals["torch"], library.lib)
    columns, wrong = answers(name, call, library, first, shape_of(name))
    assert wrong(*columns) == 0


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy under the name of CuPy, whose functions have the same parameters."""
    module = ModuleType("cupy")
    vars(module).update({name: getattr(np, name) for name in dir(np) if not name.startswith("__")})
    vars(module).update(asnumpy=np.asarray, __version__="14")
    monkeypatch.setitem(sys.modules, "cupy", module)


@pytest.mark.parametrize("name", [name for name, op in OPS.items() if "cupy" in op.rivals])
def test_the_calls_of_cupy_are_right(name: str, cupy: None) -> None:
    library = LIBRARIES["cupy"]("cuda")
    columns, wrong = answers(name, OPS[name].rivals["cupy"], library, library.lib, shape_of(name))
    assert wrong(*columns) == 0


def on_a_gpu() -> Lab:
    """A laboratory that takes a GPU to be there."""
    lab = Lab("cpu", repetitions=1)
    lab.device = "cuda:0"
    return lab


def test_a_verb_that_takes_no_array_of_a_gpu_is_left_out(cupy: None) -> None:
    def refuse(at: Library, x: Any) -> Any:
        raise DeviceError(f"no array of {at.name}")

    op, left_out = replace(OPS["unique"], ours=Call(refuse)), dict[str, str]()
    found = list(run.measure(on_a_gpu(), [op], OpsConfig(ROWS), {"cupy": "14"}, left_out))
    assert {(rate.contestant, rate.device, rate.threads) for rate in found} == {("cupy", "cuda:0", None)}
    assert left_out == {"unique: warphash": "DeviceError: no array of cupy"}
    with pytest.raises(DeviceError):
        measured(op)


def test_one_library_s_arrays_are_ours_on_a_gpu(cupy: None) -> None:
    pytest.importorskip("torch")
    found = list(run.measure(on_a_gpu(), [OPS["isin"]], OpsConfig(20), {"torch": "2", "cupy": "14"}, {}))
    assert [rate.library for rate in found if rate.is_ours] == ["cupy"] * 5


def test_a_rival_that_fails_is_left_out_with_the_reason() -> None:
    def fail(np: Any, x: Any) -> Any:
        raise AttributeError("no such function")

    left_out = dict[str, str]()
    rates = measured(replace(OPS["unique"], rivals={"numpy": Call(fail)}), left_out=left_out)
    assert left_out == {"unique: numpy": "AttributeError: no such function"}
    assert {rate.contestant for rate in rates} == {"warphash"}


CHANGES = {
    "one more": lambda column: np.concatenate((column, column[:1])),
    "one less": lambda column: column[:-1],
    "another": lambda column: np.concatenate((column[1:2], column[1:])),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    ("name", "column"),
    [
        (name, column)
        for name, columns in zip(NAMES, (1, 2, 3, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 5), strict=True)
        for column in range(columns)
    ],
)
def test_a_wrong_column_is_counted(name: str, column: int, change: str) -> None:
    """Counts differ, so that one of them in the place of another is wrong."""
    library = LIBRARIES["numpy"]("cpu")
    shape = replace(shape_of(name), distinct=101)
    columns, wrong = answers(name, OPS[name].ours, library, library, shape)
    assert wrong(*columns) == 0
    before = columns[column]
    columns[column] = CHANGES[change](before.reshape(-1))
    if len(before) == len(columns[column]):
        at = np.flatnonzero(before != before[0])[0]
        columns[column] = before.copy()
        columns[column][0] = before[at]
    assert wrong(*columns) > 0


@pytest.mark.parametrize("wrong_answer", [lambda x: x[:-1], lambda x: np.roll(x, 1)])
def test_a_planted_wrong_answer_is_in_the_rate(wrong_answer: Any) -> None:
    lie = Call(lambda np, asked, held: wrong_answer(np.isin(asked, held)))
    rates = measured(replace(OPS["isin"], rivals={"numpy": lie}))
    assert all((rate.mismatches > 0) != rate.is_ours for rate in rates if rate.rows == ROWS)


@pytest.mark.parametrize("spread", ["scattered", "dense"])
def test_inputs_have_their_shape(spread: Any) -> None:
    shape, config = Shape(3_000, 1_001, spread, 0.05), OpsConfig(3_000)
    (table,) = inputs.keys(shape, config)
    found, counts = np.unique(table["key"], return_counts=True)
    assert len(table["key"]) == 3_000 and len(found) == 1_001 and set(counts) == {2, 3}
    assert (found.tolist() == list(range(1_001))) == (spread == "dense")
    (table,) = inputs.strings(shape, config)
    assert len(set(table["key"])) == 1_001 and all(isinstance(word, str) for word in table["key"])
    (table,) = inputs.two_columns(shape, config)
    pairs = set(zip(*(column.tolist() for column in table.values()), strict=True))
    assert len(pairs) == 1_001 and all(len(set(column.tolist())) <= 32 for column in table.values())
    asked, held = inputs.lookups(shape, config)
    assert len(asked["key"]) == 3_000 and sorted(held["key"]) == sorted(found)
    assert np.isin(asked["key"], held["key"]).mean() == pytest.approx(0.05, abs=0.02)
    pairs_table, asked = inputs.pairs_and_lookups(replace(shape, hit_share=0.5), config)
    assert len(asked["key"]) == 1_001 and sorted(pairs_table["value"]) == list(range(3_000))
    assert np.isin(asked["key"], found).mean() == pytest.approx(0.5, abs=0.08)
    left, right = inputs.sides(shape, config)
    assert left["left"].tolist() == list(range(3_000)) and right["right"].tolist() == list(range(1_001))
    assert sorted(right["key"]) == sorted(found)
    left, right = inputs.sides_with_repeats(shape, config)
    assert sorted(right["key"]) == sorted([*found, *found]) and len(right["right"]) == 2_002


def test_an_operation_has_all_its_shapes() -> None:
    found = list(inputs.shapes(OPS["isin"], OpsConfig(2_000_000)))
    assert [shape.distinct for shape in found[:4]] == [1_000, 100_000, 1_000_000, 2_000_000]
    assert len(found) == 2 * 2 * 4 + 1 and len(set(found)) == len(found)
    assert {shape.rows for shape in inputs.shapes(OPS["unique_strings"], OpsConfig(10_000_000))} == {2_000_000, 10}


def test_operations_are_chosen_by_name() -> None:
    assert chosen(()) == list(OPS.values())
    assert [op.name for op in chosen(("isin", "unique"))] == ["unique", "isin"]
    with pytest.raises(ParameterError, match=r"--op must be one of unique, .*, got 'joyn'"):
        chosen(("unique", "joyn"))


def test_every_rival_is_of_a_library() -> None:
    for op in OPS.values():
        assert {rival.partition(" ")[0] for rival in op.rivals} <= set(LIBRARIES)
        assert set(op.ours_on) <= set(LIBRARIES)


def test_a_library_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    versions, missing = installed("cpu")
    assert "polars" in missing and "polars" not in versions and versions["numpy"] == np.__version__
    assert not {"torch", "cupy"} & {*versions, *missing}
