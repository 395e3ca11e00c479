"""`warphash.torch.IdMap`: dense rows, whatever happens; and what PyTorch asks of a module."""

from __future__ import annotations

import copy
import io
import multiprocessing
import os
import pickle
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from support.faults import at_each_line
from warphash import DtypeError, ParameterError, ProcessError, ShapeError

torch = pytest.importorskip("torch")

from warphash.torch import IdMap  # noqa: E402  # which imports torch
from warphash.torch.operators import register  # noqa: E402
from warphash.torch.row_numbers import RowNumbers  # noqa: E402

LARGE = torch.tensor([7, 2**62, -5])
FIRST = torch.tensor(1)
"""First row of a map that was made without options, as a state has it."""


def trained(*batches: Any, **options: Any) -> IdMap:
    """A map that has seen some batches."""
    ids = IdMap(device="cpu", **options)
    for batch in batches:
        ids(torch.as_tensor(batch))
    return ids


def check(ids: IdMap, known: set[int]) -> None:
    """Each known identifier has a row of its own, and there is no other row."""
    ordered = ids.ids()
    assert set(ordered.tolist()) == known and len(ordered) == len(known)
    assert ids.num_rows == ids.first_row + len(known)
    rows = copy.deepcopy(ids).eval()(ordered)
    assert rows.tolist() == list(range(ids.first_row, ids.num_rows))


def test_rows_are_dense_and_stay(rng: np.random.Generator) -> None:
    ids, seen = IdMap(capacity=1), {}
    for size in (1, 0, 10, 1000, 5000):
        batch = torch.from_numpy(rng.integers(-(2**63), 2**63, 3000)[rng.integers(0, 3000, size)])
        batch = torch.cat([batch, batch[: size // 2], torch.tensor(list(seen)[:5], dtype=torch.int64)])
        rows = ids(batch)
        assert rows.dtype == torch.int64
        before = len(seen)
        for key, row in zip(batch.tolist(), rows.tolist(), strict=True):
            assert seen.setdefault(key, row) == row
        assert sorted(seen.values()) == list(range(1, len(seen) + 1)), "rows are no longer dense"
        assert all(row > before for row in list(seen.values())[before:]), "a new identifier has an old row"
    check(ids, set(seen))


@pytest.mark.parametrize("shape", [(), (0,), (4,), (2, 3), (2, 1, 2)])
def test_ids_of_any_shape(shape: tuple[int, ...]) -> None:
    ids = IdMap()
    batch = torch.arange(100, 100 + int(np.prod(shape))).reshape(shape)
    assert ids(batch).shape == shape
    assert torch.equal(ids.ids()[ids.eval()(batch) - ids.first_row], batch)


def test_unknown_ids_in_evaluation() -> None:
    ids = trained(LARGE, first_row=1, unknown=0).eval()
    assert sorted(ids(torch.cat([LARGE, torch.tensor([8, 9])])).tolist()) == [0, 0, 1, 2, 3]
    assert ids.num_rows == 4
    check(ids, set(LARGE.tolist()))


def test_narrower_ids() -> None:
    ids = trained(LARGE)
    assert torch.equal(ids(torch.tensor([7, -5], dtype=torch.int32)), ids(torch.tensor([7, -5])))
    assert IdMap(torch.int32)(torch.tensor([5], dtype=torch.int32)).item() == 1


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "uint16", "uint32", "uint64"])
def test_state_of_every_type(name: str) -> None:
    largest = 2 ** (8 * np.dtype(name).itemsize - (np.dtype(name).kind == "i")) - 1
    batch = torch.from_numpy(np.array([largest, 0, 5], name))
    ids = IdMap(batch.dtype)
    rows = ids(batch)
    restored = IdMap(batch.dtype)
    restored.load_state_dict(ids.state_dict())
    assert restored.ids().dtype == batch.dtype
    assert [restored.ids().tolist()[row - 1] for row in rows.tolist()] == batch.tolist()
    assert torch.equal(restored.eval()(batch), rows)


# ---- what PyTorch asks of a module
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_under_compile(backend: str) -> None:
    ids = IdMap()
    embedding = torch.nn.Embedding(16, 4)
    torch._dynamo.reset()
    run = torch.compile(lambda batch: embedding(ids(batch)).sum(), backend=backend, fullgraph=True)
    run(torch.tensor([[5, 6], [5, 9]])).backward()
    assert embedding.weight.grad.sum() == 16 and embedding.weight.grad[1:4].count_nonzero() == 12
    check(ids, {5, 6, 9})
    ids.eval()
    run(torch.tensor([5, 6]))
    check(ids, {5, 6, 9})


def test_the_compiler_does_not_trace_what_an_operator_runs() -> None:
    """An operator that is called outside of a graph, while the compiler looks at each frame of Python."""
    ids, graphs = trained(LARGE), []

    def note(graph: Any, _: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    torch._dynamo.reset()
    operator, known = torch.ops.warphash.find_or_number.default, []

    class Call(pickle.Unpickler):  # in C
        def find_class(self, module: str, name: str) -> Any:
            return operator

        def persistent_load(self, at: Any) -> Any:
            return (ids._number, ids._state, LARGE)[at]

    program = b"\x80\x04cany\nname\n(K\x00QK\x01QK\x02QtR."
    known.append(torch.compile(lambda: Call(io.BytesIO(program)).load(), backend=note)())
    assert sorted(known[0].tolist()) == [1, 2, 3] and not graphs


def test_the_first_call_imports_nothing() -> None:
    """A call that imports needs memory, which a program has when it begins."""
    code = """
import sys, torch, warphash
from warphash.torch import IdMap, TableHandle
ids, batch, seen = IdMap(device="cpu"), torch.tensor([5, 6]), TableHandle(warphash.HashSet("int64", device="cpu"))
before = set(sys.modules)
ids(batch), ids.eval()(batch), seen.insert(batch)
sys.exit(str(sorted(set(sys.modules) - before)) if set(sys.modules) - before else 0)
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.slow
def test_an_import_that_lacks_memory_can_be_repeated() -> None:
    code = """
import torch
define, left = torch.library.register_fake, [5, 5, 5]

def fail_at_times(*args, **options):
    left[0] -= 1
    if left[0] == 0:
        left.pop(0)
        raise MemoryError
    define(*args, **options)

torch.library.register_fake = fail_at_times
for _ in range(2):
    try:
        import warphash.torch
    except MemoryError:
        pass
torch.library.register_fake = define
from warphash.torch import IdMap
assert IdMap(device="cpu")(torch.tensor([5])).item() == 1
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize(("name", "more"), [("find_row", (-1,)), ("find_or_number", ())])
def test_schema_and_fake_kernel(name: str, more: tuple[int, ...]) -> None:
    rows = RowNumbers(torch.int64, 0, 8, "cpu")
    rows.find_or_number(LARGE)
    registered = register(rows)
    operator = getattr(torch.ops.warphash, name).default
    report = torch.library.opcheck(operator, (registered.number, registered.state, LARGE, *more))
    assert set(report.values()) == {"SUCCESS"}


class Model(torch.nn.Module):
    """An embedding of any identifiers."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.ids = IdMap()
        self.rows = torch.nn.Embedding(rows, 3)

    def forward(self, batch: Any) -> Any:
        return self.rows(self.ids(batch))


def test_checkpoint() -> None:
    model, file = Model(8), io.BytesIO()
    expected = model(LARGE)
    torch.save(model.state_dict(), file)
    assert list(model.state_dict()) == ["ids.ids", "ids.first_row", "rows.weight"]
    file.seek(0)
    other = Model(8)
    other(torch.tensor([1, 2, 3, 4, 5]))  # of another run: forgotten
    other.load_state_dict(torch.load(file, weights_only=True))
    other.eval()
    torch.testing.assert_close(other(LARGE), expected)
    check(other.ids, set(LARGE.tolist()))
    other.train()(torch.tensor([11]))
    assert other.ids.num_rows == 5


def test_state_that_does_not_fit() -> None:
    ids = trained(LARGE)
    for bad, message in [
        ({}, "Missing key.*ids"),
        ({"ids": LARGE, "idz": LARGE}, "Unexpected key.*idz"),
        ({"ids": torch.tensor([3, 3])}, "ids: .*all different.* 1 repeated"),
        ({"ids": torch.ones(2, 2, dtype=torch.int64)}, "ids: .*vector"),
        ({"ids": torch.full((2,), 0.5)}, "ids: .*int64.*float32"),
        ({"ids": None}, "ids: expected a tensor.*NoneType"),
        ({"ids": [1, 2]}, r"ids: expected a tensor.*list.*torch\.as_tensor"),
        ({"ids": np.array([1, 2])}, r"ids: expected a tensor.*ndarray.*torch\.as_tensor"),
        ({"ids": torch.tensor([0, 2]).to_sparse()}, r"ids: .*to_dense\(\)"),
        ({"ids": torch.empty(2, dtype=torch.int64, device="meta")}, "ids: .*meta, which has no values"),
        ({"ids": LARGE, "first_row": None}, "first_row: expected .* got None"),
        ({"ids": LARGE, "first_row": torch.tensor(1.0)}, "first_row: expected .* got tensor"),
        ({"ids": LARGE, "first_row": torch.tensor([1, 1])}, "first_row: expected .* got tensor"),
        ({"ids": LARGE, "first_row": torch.tensor(-1)}, "first_row: expected .* got tensor"),
        ({"ids": LARGE, "first_row": torch.tensor(1, device="meta")}, "first_row: expected .* got tensor"),
    ]:
        with pytest.raises(RuntimeError, match=message):
            ids.load_state_dict({"first_row": FIRST, **bad})
        if "idz" not in bad:
            check(ids, set(LARGE.tolist()))
    ids.load_state_dict({}, strict=False)
    check(ids, set(LARGE.tolist()))
    ids.load_state_dict({"ids": torch.empty(0, dtype=torch.int64), "first_row": 1})
    check(ids, set())


def test_copies_and_pickles() -> None:
    ids = trained(LARGE)
    for twin in (copy.deepcopy(ids), pickle.loads(pickle.dumps(ids))):
        twin(torch.tensor([77]))
        check(twin, {*LARGE.tolist(), 77})
    check(ids, set(LARGE.tolist()))


def test_casts_and_moves_leave_the_map() -> None:
    ids = trained(LARGE).double().half().to("cpu")
    check(ids, set(LARGE.tolist()))
    assert "4 rows" in repr(ids) and bool(ids)


def test_unknown_ids_have_a_row_of_their_own() -> None:
    for options, first_row, unknown in [
        ({}, 1, 0),
        ({"first_row": 3}, 3, 2),
        ({"unknown": 4}, 5, 4),
        ({"unknown": -1}, 0, -1),
        ({"unknown": -7}, 0, -7),
        ({"first_row": 0, "unknown": -1}, 0, -1),
        ({"first_row": 9, "unknown": 1}, 9, 1),
    ]:
        ids = trained(LARGE, **options)
        assert (ids.first_row, ids.unknown) == (first_row, unknown)
        assert ids.eval()(torch.tensor([8, 7])).tolist() == [unknown, ids(torch.tensor([7])).item()]
        assert unknown not in ids(LARGE) and unknown < ids.num_rows
        check(ids, set(LARGE.tolist()))
    embedding = torch.nn.Embedding(trained().num_rows, 2)
    embedding(trained().eval()(LARGE))  # an empty map has the row of unknown identifiers


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"first_row": 0}, "no row for unknown.*first_row=1"),
        ({"first_row": 0, "unknown": 0}, "less than first_row=0.*give first_row=1"),
        ({"first_row": 2, "unknown": 7}, "less than first_row=2.*give first_row=8"),
        ({"first_row": 1.5}, "first_row must be an integer"),
        ({"unknown": 0.5}, "unknown must be an integer"),
    ],
)
def test_rows_that_known_and_unknown_ids_would_share(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        IdMap(**options)


def test_a_checkpoint_of_other_rows_is_refused() -> None:
    """The embedding behind the map has its rows in the old places."""
    saved = trained(LARGE, first_row=5).state_dict()
    with pytest.raises(
        RuntimeError, match=r"begin at 5, and those of this map at 1: make IdMap\(first_row=5, unknown=4"
    ):
        IdMap().load_state_dict(saved)
    ids = IdMap(first_row=5, unknown=4)
    ids.load_state_dict(saved)
    check(ids, set(LARGE.tolist()))
    old = trained(LARGE).state_dict()
    del old["first_row"]
    old._metadata[""] = {"version": 1}  # as of a release in which rows began at 0, unless first_row was given
    with pytest.raises(
        RuntimeError, match=r"begin at 0, and those of this map at 1: make IdMap\(first_row=0, unknown=-1"
    ):
        IdMap().load_state_dict(old)
    for ids in (IdMap(first_row=0, unknown=-1), IdMap(unknown=-1), IdMap(first_row=1, unknown=0)):
        ids.load_state_dict(old)
        check(ids, set(LARGE.tolist()))


def test_a_state_without_metadata_keeps_its_first_row() -> None:
    """Many programs strip a prefix from the keys of a state, and lose what PyTorch keeps beside them."""
    model = torch.nn.ModuleDict({"model": trained(LARGE, first_row=5)})
    stripped = {key.removeprefix("model."): value for key, value in model.state_dict().items()}
    with pytest.raises(RuntimeError, match=r"begin at 5, and those of this map at 1: make IdMap\(first_row=5"):
        IdMap().load_state_dict(stripped)
    ids = IdMap(first_row=5)
    ids.load_state_dict(stripped)
    check(ids, set(LARGE.tolist()))


def test_metadata_has_the_first_row_of_a_state_without_the_entry() -> None:
    state = trained(LARGE).state_dict()
    del state["first_row"]
    state._metadata[""]["first_row"] = 5
    with pytest.raises(RuntimeError, match="begin at 5, and those of this map at 1"):
        IdMap().load_state_dict(state)
    ids = IdMap(first_row=5)
    ids.load_state_dict(state)
    check(ids, set(LARGE.tolist()))


def test_a_state_that_does_not_tell_its_first_row_is_refused() -> None:
    """The mend of the message, followed to the letter."""
    saved = {"model.ids": trained(LARGE, first_row=5).ids()}
    with pytest.raises(RuntimeError, match="does not tell the first row") as caught:
        torch.nn.ModuleDict({"model": IdMap()}).load_state_dict(saved)
    mend = re.search(
        r"make IdMap\(first_row=row\).*, and set (state_dict\[.*\] = torch\.tensor\(row\))", str(caught.value)
    )
    assert mend is not None
    exec(mend[1], {"state_dict": saved, "torch": torch, "row": 5})
    ids = IdMap(first_row=5)
    torch.nn.ModuleDict({"model": ids}).load_state_dict(saved)
    check(ids, set(LARGE.tolist()))


# ---- other processes
class Numbered(torch.utils.data.Dataset):
    """A data set that numbers identifiers, or looks for their rows."""

    def __init__(self, ids: IdMap) -> None:
        self.ids = ids

    def __len__(self) -> int:
        return 2

    def __getitem__(self, i: int) -> Any:
        return self.ids(torch.tensor([7, 7 + i]))


def rows_in_workers(ids: IdMap) -> list[Any]:
    loader = torch.utils.data.DataLoader(Numbered(ids), num_workers=1, multiprocessing_context="fork")
    return [rows[0].tolist() for rows in loader]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_worker_of_a_data_loader_gives_no_rows() -> None:
    ids = trained([7])
    with pytest.raises(ProcessError, match=r"(?s)1 new identifiers.*worker of a DataLoader.*on the batches"):
        rows_in_workers(ids)
    assert rows_in_workers(ids.eval()) == [[1, 1], [1, 0]]
    ids.train()(torch.tensor([8]))
    assert rows_in_workers(ids) == [[1, 1], [1, 2]], "a worker finds the rows of known identifiers"


def say(ids: IdMap, answers: Any) -> None:
    """What a child process gets for a known, and for a new identifier; and once it has loaded the state."""
    said = [ids(torch.tensor([7])).item()]
    try:
        ids(torch.tensor([8]))
    except ProcessError as error:
        said.append(str(error))
    ids.load_state_dict(ids.state_dict())
    said.append(ids(torch.tensor([8])).item())
    answers.put(said)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_process_gives_rows_once_it_has_loaded_the_map() -> None:
    context, ids = multiprocessing.get_context("fork"), trained([7])
    answers = context.SimpleQueue()
    child = context.Process(target=say, args=(ids, answers))
    child.start()
    known, refused, new = answers.get()
    child.join(60)
    assert (known, new, child.exitcode) == (1, 2, 0)
    assert "copy of the map" in refused and "load_state_dict(state_dict())" in refused
    assert ids(torch.tensor([9])).item() == 2, "the map of this process is as it was"


@pytest.mark.parametrize("is_of_parent", [True, False])
def test_a_pickle_gives_rows_unless_it_came_from_the_parent(
    is_of_parent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A spawned child gets a pickle of the map. The process that wrote a file may be gone."""
    other = os.getpid() + 1
    if is_of_parent:
        monkeypatch.setattr(multiprocessing, "parent_process", lambda: SimpleNamespace(pid=other))
    again = RowNumbers.__new__(RowNumbers)
    again.__setstate__(trained([7])._rows.__getstate__() | {"_process": other})
    assert again.find_or_number(torch.tensor([7])).item() == 1
    if is_of_parent:
        with pytest.raises(ProcessError, match="copy of the map"):
            again.find_or_number(torch.tensor([8]))
    else:
        assert again.find_or_number(torch.tensor([8])).item() == 2


def new_rows(ids: torch.nn.Module) -> Any:
    """The rows of a new identifier, or that the map refuses."""
    try:
        return ids(torch.tensor([777])).tolist()
    except ProcessError:
        return "refused"


def copies(ids: IdMap) -> list[torch.nn.Module]:
    return [
        copy.deepcopy(ids),
        pickle.loads(pickle.dumps(ids)),
        copy.deepcopy(torch.nn.Sequential(ids)),
        copy.deepcopy(copy.deepcopy(ids)),
    ]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_copies_of_a_copy_give_no_rows() -> None:
    """Whatever process loads them, and until they load a state."""
    ids = trained([5])
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = [new_rows(each) for each in (ids, *copies(ids))]
            again = copy.deepcopy(ids)
            again.load_state_dict(again.state_dict())
            said += [new_rows(each) for each in (*copies(again), *copies(trained([5])))]
            os.write(theirs, pickle.dumps((said, pickle.dumps(ids))))
        finally:
            os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as answer:
        said, pickled = pickle.load(answer)
    os.waitpid(child, 0)
    assert said == ["refused"] * 5 + [[2]] * 8
    assert new_rows(pickle.loads(pickled)) == "refused", "the copy of another process"
    assert [new_rows(each) for each in copies(ids)] == [[2]] * 4


SEND_ON = """
import multiprocessing, torch
from warphash import ProcessError
from warphash.torch import IdMap

def send_on(ids, generations):
    try:
        print(ids(torch.tensor([777])).tolist(), flush=True)
    except ProcessError:
        print("refused", flush=True)
    if generations:
        child = multiprocessing.get_context("spawn").Process(target=send_on, args=(ids, generations - 1))
        child.start()
        child.join()

if __name__ == "__main__":
    ids = IdMap(device="cpu")
    ids(torch.tensor([777]))
    send_on(ids, 0)
    ids.load_state_dict({"ids": torch.tensor([5]), "first_row": 1})
    child = multiprocessing.get_context("spawn").Process(target=send_on, args=(ids, 1))
    child.start()
    child.join()
"""


@pytest.mark.slow
def test_a_map_that_is_sent_on_gives_no_rows(tmp_path: Path) -> None:
    """By spawn to a process, and from there to another one."""
    script = tmp_path / "send_on.py"
    script.write_text(SEND_ON)
    done = subprocess.run([sys.executable, str(script)], check=False, capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == ["[1]", "refused", "refused"], done.stderr[-2000:]


# ---- what can go wrong
def test_an_interrupt_at_any_line_leaves_no_gap() -> None:
    """The new identifiers of the batch have their rows, or none has one; and the rows of the next batch are dense."""
    calls = at_each_line(lambda: trained(LARGE), lambda ids: ids(torch.tensor([20, 7, 21, 20])), every=7)
    ends = set()
    for ids, place, done in calls:
        held = set(ids.ids().tolist())
        assert held == {*LARGE.tolist(), 20, 21} or (held == set(LARGE.tolist()) and not done), place
        ends.add(len(held))
        check(copy.deepcopy(ids), held)
        ids(torch.tensor([30, 20]))
        check(ids, {*held, 20, 30})
    assert ends == {3, 5}


def test_rows_come_in_the_order_of_first_appearance() -> None:
    ids = trained([5, 3, 5, 9], [4, 3, 8, 4])
    assert ids.ids().tolist() == [5, 3, 9, 4, 8]


def test_several_threads(rng: np.random.Generator) -> None:
    ids = IdMap(capacity=1)
    batches = [torch.from_numpy(rng.integers(0, 2000, 500)) for _ in range(16)]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(ids, batches))
    check(ids, set(torch.cat(batches).tolist()))
    known = ids.ids()
    assert all(torch.equal(known[rows - ids.first_row], batch) for rows, batch in zip(answers, batches, strict=True))


def test_bad_input() -> None:
    with pytest.raises(DtypeError, match=r"identifiers are integers, got torch\.float32"):
        IdMap(torch.float32)
    with pytest.raises(DtypeError, match="an integer type of PyTorch's"):
        IdMap("int64")
    with pytest.raises(ParameterError, match="first_row must be at least 0, got -1"):
        IdMap(first_row=-1)
    with pytest.raises(DtypeError, match="keys must be values that int64 has"):
        IdMap()(torch.full((3,), 0.5))


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ([1, 2], DtypeError, r"expected a tensor of identifiers, got list: give a tensor, such as torch\.as_"),
        (np.array([1, 2]), DtypeError, "expected a tensor of identifiers, got ndarray"),
        (None, DtypeError, "expected a tensor of identifiers, got NoneType"),
        (torch.tensor([0, 1]).to_sparse(), ShapeError, r"got torch\.sparse_coo; call \.to_dense\(\)"),
        (torch.nested.nested_tensor([[1], [2, 3]], layout=torch.jagged), ShapeError, r"nested.*tensor\.unbind\(\)"),
    ],
)
def test_what_is_no_dense_tensor(given: Any, error: type[Exception], message: str) -> None:
    ids = trained(LARGE)
    torch._dynamo.reset()
    for call in (ids, torch.compile(ids, backend="eager")):
        with pytest.raises(error, match=message):
            call(given)
    check(ids, set(LARGE.tolist()))
