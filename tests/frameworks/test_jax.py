"""Lookups in functions that JAX compiles."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from support.engines import missing
from warphash import DtypeError, HashMap, HashSet, MultiMap, ShapeError, UnsupportedVerb

jax = pytest.importorskip("jax")

from warphash.jax import contains, find  # noqa: E402  # which imports JAX

jnp = jax.numpy
N = 10


@pytest.fixture(autouse=True)
def wide() -> Iterator[None]:
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


def squares() -> HashMap:
    return HashMap.from_arrays(np.arange(N), np.arange(N) ** 2, device="cpu")


def test_under_jit() -> None:
    table = squares()

    @jax.jit
    def lookup(keys: Any) -> Any:
        values, found = find(table, 2 * keys, default=-1)
        return values + 1, found, contains(table, keys)

    values, found, there = lookup(jnp.array([[1, 4], [5, 99]]))
    assert values.tolist() == [[5, 65], [0, 0]] and found.tolist() == [[True, True], [False, False]]
    assert there.tolist() == [[True, True], [True, False]]
    table.assign(np.array([2]), np.array([7]))
    assert lookup(jnp.array([[1, 1], [1, 1]]))[0].tolist() == [[8, 8], [8, 8]], "an answer from before the update"
    eager = find(table, jnp.array([3]))
    assert isinstance(eager[0], jax.Array) and eager[0].tolist() == [9]


def test_under_vmap_and_scan() -> None:
    table, keys = squares(), jnp.arange(2 * N).reshape(4, 5)
    expected = np.where(np.arange(2 * N) < N, np.arange(2 * N) ** 2, -1).reshape(4, 5)
    rows = jax.jit(jax.vmap(partial(find, table, default=-1)))(keys)
    assert np.array_equal(rows[0], expected) and np.array_equal(rows[1], expected >= 0)
    twice = jax.vmap(jax.vmap(partial(contains, table)))(keys)
    assert np.array_equal(twice, expected >= 0)
    _, scanned = jax.lax.scan(lambda carry, row: (carry, find(table, row, default=-1)[0]), 0, keys)
    assert np.array_equal(scanned, expected)


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3)])
@pytest.mark.parametrize("value", ["float32", ("int32", (2,))])
@pytest.mark.parametrize("key", ["int64", ("int32", (3,))])
def test_keys_of_any_shape(shape: tuple[int, ...], key: Any, value: Any) -> None:
    key, value = np.dtype(key), np.dtype(value)
    table = HashMap(key, value, device="cpu")
    keys = np.arange(np.prod(shape + key.shape, dtype=int)).astype(key.base).reshape(shape + key.shape)
    batch = keys.reshape((-1, *key.shape))
    table.insert(batch, np.ones((len(batch), *value.shape), value.base))
    values, found = jax.jit(partial(find, table))(keys)
    assert values.shape == shape + value.shape and values.dtype == value.base and found.shape == shape
    assert found.all() and (values == 1).all()
    assert jax.jit(partial(contains, table))(keys).shape == shape


def test_narrower_keys() -> None:
    assert jax.jit(partial(contains, squares()))(jnp.array([3, 30], "int32")).tolist() == [True, False]


def test_sets_and_multimaps() -> None:
    keys = np.arange(N)
    members, pairs = HashSet.from_arrays(keys, device="cpu"), MultiMap.from_arrays(keys, keys, device="cpu")
    for table in (members, pairs):
        assert jax.jit(partial(contains, table))(jnp.array([3, 30])).tolist() == [True, False]
    assert jax.jit(partial(find, pairs))(jnp.array([3, 30]))[0].tolist() == [3, 0]
    with pytest.raises(UnsupportedVerb, match="expected a table with values, got HashSet"):
        find(members, jnp.array([3]))


@pytest.mark.cuda
@pytest.mark.skipif(bool(missing("cuda")), reason=missing("cuda"))
def test_a_table_on_a_gpu() -> None:
    """Whether JAX itself computes on the GPU or not."""
    table = HashMap.from_arrays(np.arange(100_000), np.arange(100_000) ** 2, device="cuda")
    run = jax.jit(lambda keys: find(table, keys + 1, default=-1)[0] - 1)
    for first in (0, 50_000, 99_999):
        keys = jnp.arange(first, first + 50_000)
        expected = np.where(np.asarray(keys) + 1 < 100_000, (np.asarray(keys) + 1) ** 2, -1) - 1
        assert np.array_equal(run(keys), expected)


def test_bad_input() -> None:
    rows = HashMap(("int32", (3,)), "int32", device="cpu")
    with pytest.raises(ShapeError, match=r"shape \(\*s, 3\), got \(4, 2\)"):
        jax.jit(partial(find, rows))(jnp.zeros((4, 2), "int32"))
    with pytest.raises(DtypeError, match="JAX has no type"):
        find(HashMap("int64", "S3", device="cpu"), jnp.array([1]))
    jax.config.update("jax_enable_x64", False)
    with pytest.raises(DtypeError, match="cut int64 down"):
        find(squares(), jnp.array([1]))


def test_nothing_else_imports_jax() -> None:
    code = "import sys, warphash; warphash.HashSet('int64', device='cpu').insert([1]); sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
