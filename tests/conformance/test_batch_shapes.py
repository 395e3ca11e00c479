"""Batches of any shape: the answers have the batch's shape, and are those that the same keys get along one axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warphash
from support.cases import ONE_OF_EACH_FAMILY, Case, only
from support.engines import one_of_each
from support.types import Array, as_bytes

N = 24


def is_chosen_map(case: Case) -> bool:
    return not (case.is_set or case.variant) and case.design in ONE_OF_EACH_FAMILY


def is_chosen_set(case: Case) -> bool:
    return case.is_set and not case.variant and case.design in ONE_OF_EACH_FAMILY


def shaped(rows: Array, batch: tuple[int, ...]) -> Array:
    return rows.reshape(batch + rows.shape[1:])


def agree(batch: tuple[int, ...], answers: Any, flat_answers: Any) -> None:
    """Check the answers of a batch against those of the same batch along one axis."""
    for made, flat in zip(answers, flat_answers, strict=True):
        assert (type(made), made.dtype, made.shape) == (np.ndarray, flat.dtype, batch + flat.shape[1:])
        assert as_bytes(made.reshape(flat.shape)) == as_bytes(flat)


@only(is_chosen_map)
@pytest.mark.parametrize("batch", [(4, 6), (2, 1, 12)], ids=str)
def test_maps(case: Case, rng: np.random.Generator, batch: tuple[int, ...]) -> None:
    flat = keys, values, more = case.keys(N, rng), case.values(N, rng), case.values(N, rng)
    some, first, second = (shaped(rows, batch) for rows in flat)
    default = case.values(1, rng)[0]
    table, twin = (case.from_arrays(keys[:10], values[:10]) for _ in range(2))
    agree(batch, table.find(some, default), twin.find(keys, default))
    agree(batch, [table.contains(some), table.get(some, default)], [twin.contains(keys), twin.get(keys, default)])
    agree(batch, table.find_or_insert(some, first), twin.find_or_insert(keys, values))
    agree(batch, [table.erase(some)], [twin.erase(keys)])
    agree(batch, [table.insert(some, first)], [twin.insert(keys, values)])
    agree(batch, [table[some]], [values])
    agree(batch, [table.assign(some, second)], [twin.assign(keys, more)])
    agree(batch, [table.upsert(some, first, "last")], [twin.upsert(keys, values, "last")])
    agree(batch, [table.setdefault(some, second)], [values])
    table[some] = default
    agree(batch, [table.pop(some)], [np.broadcast_to(default, values.shape).astype(values.dtype)])
    assert len(table) == 0 and table.insert(some, default).all()
    del table[some]
    assert len(table) == 0


@only(is_chosen_set)
def test_sets(case: Case, rng: np.random.Generator) -> None:
    keys = case.keys(N, rng)
    some = shaped(keys, (3, 8))
    table, twin = (case.from_arrays(keys[:10], None) for _ in range(2))
    agree((3, 8), [table.contains(some)], [twin.contains(keys)])
    agree((3, 8), [table.insert(some)], [twin.insert(keys)])
    agree((3, 8), [table.probe_counts(some)], [twin.probe_counts(keys)])
    agree((3, 8), [table.erase(some)], [twin.erase(keys)])
    table.update(some)
    assert len(table) == N and table.issuperset(some)


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated", "cuda"))
def test_multimaps(device: str) -> None:
    keys = np.array([[1, 2, 1], [3, 1, 9]])
    table = warphash.MultiMap("i8", "i4", device=device)
    table.insert(keys[:, :2], np.array([[10, 20], [30, 11]], "i4"))
    assert table.count(keys).tolist() == [[2, 1, 2], [1, 2, 0]]
    values, offsets = table.find_all(keys)  # of one axis: the number of values differs from key to key
    assert offsets.tolist() == [0, 2, 3, 5, 6, 8, 8] and sorted(values[:2].tolist()) == [10, 11] and len(values) == 8
    assert table[keys[:, :2]][1].tolist() == [0, 2, 3, 4, 6]
    with pytest.raises(KeyError, match="9"):
        table[keys]
    assert table.find(keys)[1].tolist() == [[True] * 3, [True, True, False]]
    assert table.erase_all(keys[1:]).tolist() == [[1, 2, 0]] and table.erase(keys).sum() == 1


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated", "cuda"))
def test_scores(device: str) -> None:
    keys, scores = np.arange(6).reshape(2, 3), np.array([[5, 4, 3], [2, 1, 0]], "f8")
    table = warphash.HashMap("i8", "i4", device=device, max_size=100, evict="score")
    assert table.insert(keys, 1, scores=scores).shape == (2, 3)
    with pytest.raises(warphash.ShapeError, match="keys and scores must be of one shape"):
        table.insert(keys, 1, scores=scores.T)
    assert table.evict(2)[0].tolist() in ([5, 4], [4, 5])


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated", "cuda"))
def test_mixed_batches(device: str) -> None:
    from warphash import Operation

    table = warphash.HashMap("i8", "i4", device=device, design="slab")
    keys = np.arange(6).reshape(2, 3)
    codes = np.full((2, 3), Operation.INSERT, np.uint8)
    values, done = table.execute(codes, keys, keys.astype("i4"))
    assert values.shape == done.shape == (2, 3) and done.all()
    assert table[keys].tolist() == keys.tolist()


@pytest.mark.parametrize("shape", [(0, 4), (3, 0, 2), (1, 1), (2,) * 8], ids=str)
def test_unusual_shapes(shape: tuple[int, ...]) -> None:
    keys = np.arange(np.prod(shape)).reshape(shape)
    table = warphash.HashMap("i8", ("f4", (2,)), device="cpu")
    rows = np.stack([keys, keys + 0.5], axis=-1).astype("f4")
    assert table.insert(keys, rows).shape == shape and len(table) == keys.size
    values, found = table.find(keys)
    assert values.shape == (*shape, 2) and found.shape == shape and (values == rows).all()
    assert table.insert(np.asfortranarray(keys), rows[..., ::-1]).shape == shape  # not contiguous: copied in order
    assert not keys.size or (table[keys.T].reshape(-1, 2)[0] == rows.reshape(-1, 2)[0]).all()


def test_keys_that_are_rows() -> None:
    table = warphash.HashMap(("i4", (3,)), "f8", device="cpu")
    voxels = np.arange(24, dtype="i4").reshape(2, 4, 3)
    assert table.insert(voxels, np.arange(8.0).reshape(2, 4)).all()
    assert table[voxels].tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]] and table[voxels[1, 2]] == 6
    for wrong in (voxels[..., :2], voxels.reshape(2, 3, 4), voxels.reshape(24), voxels[0, 0, 0]):
        with pytest.raises(warphash.ShapeError, match=r"keys must have shape \(\.\.\., 3\)"):
            table.contains(wrong)


def test_values_of_another_shape() -> None:
    """Neither broadcast nor flattened, except a single value."""
    table, keys = warphash.HashMap("i8", "f8", device="cpu"), np.arange(6)
    grid = keys.reshape(2, 3)
    for some, values in ((grid, keys), (keys, grid), (grid, grid.T), (grid, keys[:3]), (grid, grid[:1])):
        for values_given in (values.astype("f8"), values.tolist()):
            with pytest.raises(warphash.ShapeError, match=r"of one shape, got keys of \("):
                table.insert(some, values_given)
    assert len(table) == 0
    assert table.insert(grid, 7.0).shape == (2, 3) and (table[grid] == 7).all()
    assert table.insert(grid[:1, :1], 8.0).tolist() == [[False]]


def test_lists_of_lists() -> None:
    table = warphash.HashMap("i8", "i8", device="cpu")
    assert table.insert([[1, 2], [3, 4]], [[10, 20], [30, 40]]).shape == (2, 2)
    assert table[[[4], [1]]].tolist() == [[40], [10]]


def test_the_kind_of_all_keys_has_no_shape() -> None:
    table = warphash.HashMap("i8", "i8", device="cpu")
    table.insert(np.arange(6).reshape(2, 3), np.arange(6).reshape(2, 3))
    assert table.keys().shape == table.values().shape == (6,)
    assert table.copy().keys().shape == (6,)


@pytest.mark.parametrize("library", ["torch", "cupy", "jax.numpy"])
def test_other_libraries(library: str) -> None:
    np_like: Any = pytest.importorskip(library)
    keys = np_like.arange(6).reshape((2, 3))
    width = np.dtype(str(keys.dtype).removeprefix("torch."))
    table = warphash.HashMap(width, ("f4", (2,)))
    assert tuple(table.insert(keys, np.array([0.5, 1.5], "f4")).shape) == (2, 3)
    values, found = table.find(keys)
    assert type(values) is type(found) is type(keys) and bool(found.all())
    assert tuple(values.shape) == (2, 3, 2) and tuple(table.contains(keys.T).shape) == (3, 2)
