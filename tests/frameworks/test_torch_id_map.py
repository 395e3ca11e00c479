"""`warphash.torch.IdMap`: dense rows, whatever happens; and what PyTorch asks of a module."""

from __future__ import annotations

import copy
import io
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from warphash import DtypeError, HashMap, ParameterError

torch = pytest.importorskip("torch")

from warphash.torch import IdMap  # noqa: E402  # which imports torch
from warphash.torch.operators import register  # noqa: E402
from warphash.torch.row_numbers import RowNumbers  # noqa: E402

LARGE = torch.tensor([7, 2**62, -5])


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
        assert sorted(seen.values()) == list(range(len(seen))), "rows are no longer dense"
        assert all(row >= before for row in list(seen.values())[before:]), "a new identifier has an old row"
    check(ids, set(seen))


@pytest.mark.parametrize("shape", [(), (0,), (4,), (2, 3), (2, 1, 2)])
def test_ids_of_any_shape(shape: tuple[int, ...]) -> None:
    ids = IdMap()
    batch = torch.arange(100, 100 + int(np.prod(shape))).reshape(shape)
    assert ids(batch).shape == shape
    assert torch.equal(ids.ids()[ids.eval()(batch)], batch)


def test_unknown_ids_in_evaluation() -> None:
    ids = trained(LARGE, first_row=1, unknown=0).eval()
    assert sorted(ids(torch.cat([LARGE, torch.tensor([8, 9])])).tolist()) == [0, 0, 1, 2, 3]
    assert ids.num_rows == 4
    check(ids, set(LARGE.tolist()))


def test_narrower_ids() -> None:
    ids = trained(LARGE)
    assert torch.equal(ids(torch.tensor([7, -5], dtype=torch.int32)), ids(torch.tensor([7, -5])))
    assert IdMap(torch.int32)(torch.tensor([5], dtype=torch.int32)).item() == 0


# ---- what PyTorch asks of a module
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_under_compile(backend: str) -> None:
    ids = IdMap()
    embedding = torch.nn.Embedding(16, 4)
    torch._dynamo.reset()
    run = torch.compile(lambda batch: embedding(ids(batch)).sum(), backend=backend, fullgraph=True)
    run(torch.tensor([[5, 6], [5, 9]])).backward()
    assert embedding.weight.grad.sum() == 16 and embedding.weight.grad[:3].count_nonzero() == 12
    check(ids, {5, 6, 9})
    ids.eval()
    run(torch.tensor([5, 6]))
    check(ids, {5, 6, 9})


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
    assert list(model.state_dict()) == ["ids.ids", "rows.weight"]
    file.seek(0)
    other = Model(8)
    other(torch.tensor([1, 2, 3, 4, 5]))  # of another run: forgotten
    other.load_state_dict(torch.load(file, weights_only=True))
    other.eval()
    torch.testing.assert_close(other(LARGE), expected)
    check(other.ids, set(LARGE.tolist()))
    other.train()(torch.tensor([11]))
    assert other.ids.num_rows == 4


def test_state_that_does_not_fit() -> None:
    ids = trained(LARGE)
    for bad, message in [
        ({}, "Missing key.*ids"),
        ({"ids": LARGE, "idz": LARGE}, "Unexpected key.*idz"),
        ({"ids": torch.tensor([3, 3])}, "ids: .*all different.* 1 repeated"),
        ({"ids": torch.ones(2, 2, dtype=torch.int64)}, "ids: .*vector"),
        ({"ids": torch.ones(2)}, "ids: .*int64.*float32"),
    ]:
        with pytest.raises(RuntimeError, match=message):
            ids.load_state_dict(bad)
        if bad.keys() <= {"ids"}:
            check(ids, set(LARGE.tolist()))
    ids.load_state_dict({}, strict=False)
    check(ids, set(LARGE.tolist()))
    ids.load_state_dict({"ids": torch.empty(0, dtype=torch.int64)})
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
    assert "3 rows" in repr(ids) and bool(ids)


# ---- what can go wrong
@pytest.mark.parametrize("verb", ["insert", "upsert", "find"])
@pytest.mark.parametrize("behind", [False, True])
def test_a_batch_that_stops_half_way(verb: str, behind: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt before or behind each call of the table: the rows of the next batch are dense."""
    ids = trained(LARGE)

    def stopped(self: Any, *args: Any) -> Any:
        if behind:
            getattr(original, verb)(self, *args)
        raise KeyboardInterrupt

    class original:
        insert, upsert, find = HashMap.insert, HashMap.upsert, HashMap.find

    with monkeypatch.context() as patched:
        patched.setattr(HashMap, verb, stopped)
        with pytest.raises(KeyboardInterrupt):
            ids(torch.tensor([20, 7, 21, 20]))
    done = {20, 21} if verb == "find" else set()
    check(copy.deepcopy(ids), {*LARGE.tolist(), *done})
    assert ids.eval()(torch.tensor([20])).item() == (ids.ids().tolist().index(20) if done else -1)
    ids.train()(torch.tensor([30, 20]))
    check(ids, {*LARGE.tolist(), *done, 20, 30})


def test_several_threads(rng: np.random.Generator) -> None:
    ids = IdMap(capacity=1)
    batches = [torch.from_numpy(rng.integers(0, 2000, 500)) for _ in range(16)]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(ids, batches))
    check(ids, set(torch.cat(batches).tolist()))
    known = ids.ids()
    assert all(torch.equal(known[rows], batch) for rows, batch in zip(answers, batches, strict=True))


def test_bad_input() -> None:
    with pytest.raises(DtypeError, match=r"identifiers are integers, got torch\.float32"):
        IdMap(torch.float32)
    with pytest.raises(DtypeError, match="an integer type of PyTorch's"):
        IdMap("int64")
    with pytest.raises(ParameterError, match="first_row must be at least 0, got -1"):
        IdMap(first_row=-1)
    with pytest.raises(DtypeError, match="keys must be int64"):
        IdMap()(torch.ones(3))
