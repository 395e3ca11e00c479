"""Lookups and updates in functions that JAX compiles."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from support.engines import missing
from warphash import DtypeError, HashMap, HashSet, MultiMap, ParameterError, ShapeError, TableFull, UnsupportedVerb

jax = pytest.importorskip("jax")

from warphash.jax import assign, contains, erase, find, insert, upsert  # noqa: E402  # which imports JAX

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


class TestUpdates:
    """Each runs once for each run of the function, in the order of the program."""

    def test_order(self) -> None:
        """No answer but the last is used, and no call depends on the answer of another one."""
        table = HashMap("int64", "int64", device="cpu")

        @jax.jit
        def run(keys: Any) -> Any:
            before = contains(table, keys, ordered=True)
            added = insert(table, keys, 10 * keys)
            assign(table, keys[:1], 7)
            upsert(table, keys, jnp.ones_like(keys), "add")
            held = find(table, keys, default=-1, ordered=True)
            erase(table, keys[1:2])
            return before, added, held, find(table, keys, default=-1, ordered=True)

        for turn in range(3):
            keys = jnp.array([1, 2, 3]) + 100 * turn
            before, added, held, after = run(keys)
            values = [8, 10 * int(keys[1]) + 1, 10 * int(keys[2]) + 1]
            assert not before.any() and added.all() and held[0].tolist() == values and held[1].all()
            assert after[0].tolist() == [values[0], -1, values[2]] and after[1].tolist() == [True, False, True]
            jax.effects_barrier()
            assert len(table) == 2 * (turn + 1)
        table.check()

    def test_answers_that_nobody_uses(self) -> None:
        table = HashMap("int64", "int64", device="cpu")
        run = jax.jit(lambda keys: (upsert(table, keys, 1, "add"), keys + 1)[1])
        for _ in range(3):
            run(jnp.array([4, 4, 5]))
        jax.effects_barrier()
        assert dict(table.items()) == {4: 6, 5: 3}

    def test_under_vmap_scan_and_cond(self) -> None:
        """Rows of vmap are one batch; turns of scan come one after the other."""
        table, keys = HashMap("int64", "float32", device="cpu"), jnp.array([[1, 2], [2, 3], [3, 1]])
        added = jax.jit(jax.vmap(lambda row: insert(table, row, 2.5)))(keys)
        assert added.shape == (3, 2) and added.sum() == 3 and len(table) == 3
        jax.vmap(lambda row: upsert(table, row, jnp.ones(2, "float32"), "add"))(keys)
        jax.vmap(lambda value: upsert(table, keys[0], value, "add"))(jnp.ones(5, "float32"))
        nested = jax.vmap(jax.vmap(lambda key: find(table, key, ordered=True)[0]))(keys)
        assert nested.tolist() == [[9.5, 9.5], [9.5, 4.5], [4.5, 9.5]]
        _, gone = jax.lax.scan(lambda carry, row: (carry, erase(table, row)), 0, keys)
        assert gone.tolist() == [[True, True], [False, True], [False, False]]
        jax.jit(lambda yes: jax.lax.cond(yes, lambda: insert(table, keys[0], 1).sum(), lambda: 0))(True)
        jax.effects_barrier()
        assert sorted(table.keys().tolist()) == [1, 2]

    def test_no_gradient_flows_into_the_values(self) -> None:
        table, keys = HashMap("int64", "float64", device="cpu"), jnp.arange(3)
        grad = jax.grad(lambda x: (assign(table, keys, x), (x * x).sum())[1])(jnp.arange(3.0))
        jax.effects_barrier()
        assert grad.tolist() == [0, 2, 4] and table.find(np.arange(3))[0].tolist() == [0, 1, 2]

    @pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
    @pytest.mark.parametrize("value", ["float32", ("int32", (2,))])
    @pytest.mark.parametrize("key", ["int64", ("int32", (3,))])
    def test_keys_of_any_shape(self, shape: tuple[int, ...], key: Any, value: Any) -> None:
        key, value = np.dtype(key), np.dtype(value)
        table, n = HashMap(key, value, device="cpu"), int(np.prod(shape))
        keys = np.arange(np.prod(shape + key.shape, dtype=int)).astype(key.base).reshape(shape + key.shape)
        values = np.arange(np.prod(shape + value.shape, dtype=int)).astype(value.base).reshape(shape + value.shape)
        added = jax.jit(partial(insert, table))(keys, values)
        assert added.shape == shape and added.all() and len(table) == n
        assert np.array_equal(find(table, keys)[0], values)
        one = np.ones(value.shape, value.base)
        assert not jax.jit(partial(assign, table))(keys, one).any()
        assert np.array_equal(find(table, keys)[0], np.ones(shape + value.shape))
        assert jax.jit(partial(erase, table))(keys).shape == shape and len(table) == 0

    def test_sets_and_multimaps(self) -> None:
        members, pairs, keys = HashSet("int64", device="cpu"), MultiMap("int64", "int64", device="cpu"), jnp.arange(3)
        assert jax.jit(partial(insert, members))(keys).all() and erase(members, keys[:1]).all()
        assert jax.jit(partial(insert, pairs))(keys, keys) is None and insert(pairs, keys, 5) is None
        jax.effects_barrier()
        assert sorted(members.keys().tolist()) == [1, 2] and pairs.count([0, 1, 3]).tolist() == [2, 2, 0]

    def test_an_error_of_the_table(self) -> None:
        """The table is as it was before the update that failed, and what comes later in the program did not run."""
        options: dict[str, Any] = {"design": "linear_probing", "capacity": 4, "load_factor": 1.0, "on_full": "raise"}
        table = HashMap("int64", "int64", device="cpu", **options)

        @jax.jit
        def run(keys: Any) -> Any:
            insert(table, keys[:2], 1)
            added = insert(table, keys, 2)
            erase(table, keys[:1])
            return added

        with pytest.raises(jax.errors.JaxRuntimeError, match=TableFull.__name__):
            run(jnp.arange(100)).block_until_ready()
        assert dict(table.items()) == {0: 1, 1: 1}
        assert not insert(table, jnp.arange(2), 3).any(), "the table is not what it was"
        table.check()

    def test_bad_input_is_refused_when_the_function_is_traced(self) -> None:
        table, members, keys = HashMap("int32", "int32", device="cpu"), HashSet("int32", device="cpu"), jnp.arange(3)
        narrow = keys.astype("int32")
        with pytest.raises(UnsupportedVerb, match="a HashSet has no assign"):
            assign(members, narrow, 1)
        with pytest.raises(UnsupportedVerb, match="a HashSet has no values, got values=1"):
            insert(members, narrow, 1)
        with pytest.raises(UnsupportedVerb, match="a MultiMap has no upsert"):
            upsert(MultiMap("int32", "int32", device="cpu"), narrow, 1, "add")
        with pytest.raises(ShapeError, match=r"values must have shape \(3,\) or \(\), got \(2,\)"):
            jax.jit(partial(insert, table))(narrow, narrow[:2])
        with pytest.raises(DtypeError, match="bool"):
            jax.jit(partial(insert, table))(keys > 0, 1)
        with pytest.raises(ParameterError, match="ad"):
            jax.jit(partial(upsert, table, op="ad"))(narrow, 1)
        assert len(table) == 0


@pytest.mark.cuda
@pytest.mark.skipif(bool(missing("cuda")), reason=missing("cuda"))
def test_updates_of_a_table_on_a_gpu() -> None:
    table, n = HashMap("int64", "int64", device="cuda"), 50_000
    run = jax.jit(lambda keys: (upsert(table, keys, 1, "add"), find(table, keys, ordered=True)[0])[1])
    for turn in range(1, 4):
        assert (run(jnp.arange(n)) == turn).all()
    jax.effects_barrier()
    assert len(table) == n
    table.check()


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
