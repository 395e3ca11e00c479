"""Tables in functions that ``torch.compile`` changes: the operators' schemas, and the order of their calls."""

from __future__ import annotations

import copy
import gc
import pickle
from typing import Any

import numpy as np
import pytest

from warphash import DtypeError, HashMap, HashSet, MultiMap, ParameterError, ShapeError, UnsupportedVerb

torch = pytest.importorskip("torch")

from warphash.torch import TableHandle  # noqa: E402  # which imports torch
from warphash.torch.operators import register  # noqa: E402

BACKENDS = ["eager", "aot_eager", "inductor"]
"""Dynamo alone; with functional graphs, in which no operator mutates; and the default."""


def squares(n: int = 10) -> TableHandle:
    """The squares of 0 to n - 1."""
    return TableHandle(HashMap.from_arrays(np.arange(n), np.arange(n) ** 2, device="cpu"))


def compiled(function: Any, backend: str, **options: Any) -> Any:
    torch._dynamo.reset()
    return torch.compile(function, backend=backend, fullgraph=True, **options)


# ---- each operator by itself
KEYS = torch.arange(5, 12)
CALLS = {
    "find": (KEYS, -1, torch.int64, []),
    "contains": (KEYS,),
    "insert": (torch.arange(10), torch.arange(10)),
    "assign": (torch.arange(10), torch.arange(10)),
    "upsert": (torch.arange(10), torch.arange(10), "max"),
    "erase": (torch.arange(10, 20),),
}
"""Arguments for a table of the squares of 0 to 9: as opcheck repeats a call, the second answer must be the first."""


@pytest.mark.parametrize("name", CALLS)
def test_schema_and_fake_kernel(name: str) -> None:
    registered = register(squares().table)
    operator = getattr(torch.ops.warphash, name).default
    report = torch.library.opcheck(operator, (registered.number, registered.state, *CALLS[name]))
    assert set(report.values()) == {"SUCCESS"}


@pytest.mark.parametrize("name", CALLS)
def test_updates_say_that_they_mutate_the_state(name: str) -> None:
    schema = getattr(torch.ops.warphash, name).default._schema
    mutated = [argument.name for argument in schema.arguments if argument.alias_info and argument.alias_info.is_write]
    assert mutated == ([] if name in ("find", "contains") else ["state"])


# ---- compiled functions
def history(handle: TableHandle, keys: Any) -> tuple[Any, ...]:
    """Calls whose answers tell in which order they were made; the answers of some are not used."""
    before = handle.contains(keys)
    handle.insert(keys, 5)
    handle.insert(keys, 6)
    inserted = handle.find(keys, -1)
    handle.upsert(keys, torch.ones_like(keys), "add")
    summed = handle.find(keys, -1)
    handle.assign(keys, keys)
    assigned = handle.find(keys, -1)
    handle.erase(keys[:1])
    return before, *inserted, *summed, *assigned, handle.contains(keys)


@pytest.mark.parametrize("backend", BACKENDS)
def test_calls_keep_their_order(backend: str) -> None:
    handle, keys = squares(0), torch.tensor([[3, 4], [7, 8]])
    before, inserted, _, summed, _, assigned, found, after = compiled(history, backend)(handle, keys)
    assert not before.any()
    assert (inserted == 5).all() and (summed == 6).all() and (assigned == keys).all() and found.all()
    assert after.tolist() == [[False, False], [True, True]]
    assert len(handle.table) == 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_update_whose_answer_nobody_reads_is_made(backend: str) -> None:
    handle = squares()

    def count(keys: Any) -> Any:
        handle.upsert(keys, 1, "add")
        return keys + 1

    run = compiled(count, backend)
    for _ in range(3):
        run(torch.tensor([5, 50]))
    assert handle.find(torch.tensor([5, 50]))[0].tolist() == [28, 3]


def test_two_handles_of_a_table_keep_their_order() -> None:
    handle = squares(0)
    other = TableHandle(handle.table)

    def both(keys: Any) -> Any:
        before = other.contains(keys)
        handle.insert(keys, 1)
        return before, other.contains(keys)

    before, after = compiled(both, "aot_eager")(torch.tensor([1]))
    assert (before.item(), after.item()) == (False, True)


def test_a_graph_serves_other_tables_and_batches() -> None:
    graphs = 0

    def backend(graph: Any, _: Any) -> Any:
        nonlocal graphs
        graphs += 1
        return graph.forward

    run = compiled(lambda handle, keys: handle.find(keys, -1), backend)  # type: ignore[arg-type]
    for size in range(2, 9):
        values, found = run(squares(size), torch.arange(size + 3))
        assert values.tolist() == [key**2 for key in range(size)] + [-1] * 3
        assert found.sum() == size
    assert graphs <= 3  # of fixed numbers first, and then for any


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 3)])
@pytest.mark.parametrize("value", ["float64", ("int32", (2,))])
@pytest.mark.parametrize("key", ["int64", ("int32", (3,))])
def test_keys_of_any_shape(shape: tuple[int, ...], key: Any, value: Any) -> None:
    handle = TableHandle(HashMap(key, value, device="cpu"))
    key_shape, value_shape = np.dtype(key).shape, np.dtype(value).shape
    keys = torch.arange(np.prod(shape + key_shape, dtype=int)).reshape(shape + key_shape)
    keys = keys.to(torch.int32 if key_shape else torch.int64)
    values = torch.ones(shape + value_shape, dtype=torch.int32 if value_shape else torch.float64)

    def step(keys: Any, values: Any) -> Any:
        return handle.insert(keys, values), handle.contains(keys), *handle.find(keys)

    added, there, got, found = compiled(step, "aot_eager")(keys, values)
    assert added.shape == there.shape == found.shape == shape
    assert added.all() and there.all() and found.all()
    torch.testing.assert_close(got, values)


def test_a_set() -> None:
    members = TableHandle(HashSet("int64", device="cpu"))
    added, after = compiled(lambda keys: (members.insert(keys), members.contains(keys + 1)), "aot_eager")(
        torch.tensor([1, 5, 2])
    )
    assert added.all() and after.tolist() == [True, False, False]
    with pytest.raises(UnsupportedVerb, match="HashSet has no values"):
        members.find(torch.tensor([1]))


def test_no_gradient_but_rows_for_an_embedding() -> None:
    handle = squares(2)
    embedding = torch.nn.Embedding(2, 3)
    compiled(lambda keys: embedding(handle.find(keys)[0]).sum(), "aot_eager")(torch.tensor([1, 0, 1])).backward()
    assert embedding.weight.grad.tolist() == [[1.0] * 3, [2.0] * 3]
    weights = torch.ones(2, dtype=torch.float64, requires_grad=True)
    sums = TableHandle(HashMap("int64", "float64", device="cpu"))
    sums.upsert(torch.tensor([1, 1]), weights, "add")
    assert not sums.find(torch.tensor([1]))[0].requires_grad


def test_keys_that_the_table_widens() -> None:
    assert compiled(squares().contains, "aot_eager")(torch.tensor([3, 30], dtype=torch.int32)).tolist() == [True, False]


# ---- the life of a handle
def test_copies_and_pickles() -> None:
    handle = squares()
    for twin in (copy.deepcopy(handle), pickle.loads(pickle.dumps(handle))):
        twin.insert(torch.tensor([77]), 1)
        assert len(twin.table) == 11
    assert len(handle.table) == 10


def test_the_handle_keeps_the_table_alive_and_nobody_else_does() -> None:
    registered = register(squares().table)
    number, state = registered.number, registered.state
    assert torch.ops.warphash.contains(number, state, torch.tensor([3])).item()
    del registered
    gc.collect()
    with pytest.raises(ParameterError, match="keep the handle"):
        torch.ops.warphash.contains(number, state, torch.tensor([3]))


# ---- refusals
def test_bad_input() -> None:
    handle = squares()
    with pytest.raises(UnsupportedVerb, match="expected a HashMap or a HashSet, got MultiMap"):
        TableHandle(MultiMap("int64", "int64", device="cpu"))
    with pytest.raises(ShapeError, match=r"values must have shape \(2,\).* got \(3,\)"):
        handle.insert(torch.arange(2), torch.arange(3))
    with pytest.raises(DtypeError, match="expected a tensor of keys, got list"):
        handle.find([1, 2])
    with pytest.raises(ShapeError, match=r"got torch\.sparse_coo; call \.to_dense"):
        handle.find(torch.tensor([0, 2]).to_sparse())
    with pytest.raises(ShapeError, match="a value for each key"):
        handle.insert(torch.arange(2))
    rows = TableHandle(HashMap(("int32", (3,)), "int32", device="cpu"))
    with pytest.raises(ShapeError, match=r"keys must have shape \(\*s, 3\), got \(4, 2\)"):
        rows.contains(torch.zeros(4, 2, dtype=torch.int32))


def test_a_handle_that_was_made_in_inference_mode() -> None:
    """Its state is written to in any mode."""
    table = HashSet("int64", device="cpu")
    with torch.inference_mode():
        handle = TableHandle(table)

    def step(keys: Any) -> Any:
        handle.insert(keys)
        return handle.contains(keys)

    assert compiled(step, "aot_eager")(torch.arange(5)).all() and len(table) == 5
