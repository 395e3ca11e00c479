"""``like=``: of which library the arrays of all keys and values are, and that they stay where the table is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from support.engines import one_of_each
from support.types import as_bytes
from warphash import DeviceError, DtypeError, HashMap, HashSet, MultiMap, ParameterError
from warphash.arrays.adapters.numpy import NUMPY
from warphash.arrays.library import ArrayView, Library
from warphash.runtime.emulated import engine as emulated

KEYS, VALUES = np.arange(10), np.arange(10) * 2.5


class Fake(np.ndarray):
    """An array of a library that NumPy knows nothing of."""


def fakes(array: Any) -> Any:
    return np.asarray(array).view(Fake)


class FakeLibrary:
    """An adapter whose arrays are `Fake`, in host memory."""

    kind = "fake"

    def see(self, array: Any) -> ArrayView:
        return NUMPY.see(np.ascontiguousarray(array))._replace(library=self, owner=array)

    def empty(self, like: ArrayView, shape: Any, dtype: Any, allocator: Any) -> ArrayView:
        if dtype.kind == "M":
            raise DtypeError("this library has no dates")
        return self.see(np.empty(shape, dtype).view(Fake))

    def export(self, made: ArrayView) -> Any:
        return made.owner

    def example(self, device: str) -> Any:
        if device != "cpu":
            raise DeviceError("this library has no arrays there")
        return fakes(np.empty(0))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Library:
    from warphash.arrays import view

    monkeypatch.setitem(view.known_libraries, Fake, library := FakeLibrary())
    return library


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated"))
def test_arrays_are_of_the_kind_that_the_table_was_first_given(fake: Library, device: str) -> None:
    table = HashMap("i8", "f8", device=device)
    assert type(table.keys()) is np.ndarray
    table.contains(KEYS)  # nothing is kept of these
    table.insert(fakes(KEYS), VALUES)
    table.insert(KEYS + 100, VALUES)
    for array in (table.keys(), table.values(), *table.to_arrays(), *table.copy().to_arrays()):
        assert type(array) is Fake and len(array) == 20
    keys, values = table.to_arrays()
    assert dict(zip(keys.tolist(), values.tolist(), strict=True))[103] == 7.5
    assert type(HashSet.from_arrays(fakes(KEYS), device=device).keys()) is Fake


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated"))
@pytest.mark.parametrize("kind", [HashMap, MultiMap])
def test_like_names_the_kind(fake: Library, kind: Any, device: str) -> None:
    table = kind.from_arrays(fakes(KEYS), fakes(VALUES), device=device)
    for like in ("numpy", np.empty(0), [1, 2]):
        for array in (table.keys(like=like), table.values(like=like), *table.to_arrays(like=like)):
            assert type(array) is np.ndarray and len(array) == 10
    assert type(kind.from_arrays(KEYS, VALUES, device=device).keys(like=fakes(VALUES))) is Fake


def test_what_python_reads_one_by_one_is_of_numpy(fake: Library) -> None:
    table = HashMap.from_arrays(fakes(KEYS), fakes(VALUES), device="cpu")
    assert {type(key) for key in table} == {np.int64}
    assert {(type(key), type(value)) for key, value in table.items()} == {(np.int64, np.float64)}
    assert (3, 7.5) in table.items() and (3, 7) not in table.items() and ("x", 1) not in table.items()


def test_refusals_of_like(fake: Library) -> None:
    table = HashMap.from_arrays(KEYS, KEYS.astype("M8[s]"), device="cpu")
    with pytest.raises(ParameterError, match="numpy, torch, got 'polars'"):
        table.keys(like="polars")
    with pytest.raises(DtypeError, match="no dates"):
        table.values(like=fakes(KEYS))
    with pytest.raises(TypeError):
        table.keys(np.empty(0))


def test_a_library_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    from warphash.arrays import view

    def absent(name: str) -> Any:
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(view, "import_module", absent)
    with pytest.raises(ParameterError, match="cupy cannot be imported"):
        HashSet.from_arrays(KEYS, device="cpu").keys(like="cupy")


def test_torch() -> None:
    torch = pytest.importorskip("torch")
    table = HashMap.from_arrays(torch.arange(5), torch.arange(5.0), device="cpu")
    assert isinstance(table.keys(), torch.Tensor) and table.values().dtype == torch.float32
    assert isinstance(HashSet.from_arrays(KEYS, device="cpu").keys(like="torch"), torch.Tensor)


def test_jax() -> None:
    jax = pytest.importorskip("jax")
    table = HashMap.from_arrays(jax.numpy.arange(5), jax.numpy.arange(5.0), device="cpu")
    assert isinstance(table.keys(), jax.Array) and table.values().dtype == np.float32
    assert isinstance(HashSet.from_arrays(KEYS.astype("i4"), device="cpu").keys(like="jax"), jax.Array)


# ---- nothing that grows with the table goes by way of the host


@contextmanager
def bytes_copied(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The bytes of each copy between the host and the emulated engine."""
    engine, copied = emulated.engine(), []
    with monkeypatch.context() as patch:
        for name, size in (
            ("to_host", lambda ptr, dtype, count, *_: np.dtype(dtype).itemsize * count),
            ("from_host", lambda array, *_: array.nbytes),
            ("upload", lambda target, array, *_: array.nbytes),
        ):
            original = getattr(engine, name)

            def counted(*given: Any, _original: Any = original, _size: Any = size) -> Any:
                copied.append(_size(*given))
                return _original(*given)

            patch.setattr(engine, name, counted)
        yield copied


def sets(n: int) -> tuple[HashSet, HashSet]:
    """Two sets of which each has half of its keys alone."""
    keys = np.random.default_rng(5).permutation(3 * n // 2).astype(np.uint64)
    return (
        HashSet.from_arrays(keys[:n], device="emulated", seed=3),
        HashSet.from_arrays(keys[n // 2 :], device="emulated", seed=4),
    )


ALGEBRA = {
    "or": lambda a, b: a | b,
    "and": lambda a, b: a & b,
    "sub": lambda a, b: a - b,
    "xor": lambda a, b: a ^ b,
    "le": lambda a, b: a <= b,
    "eq": lambda a, b: a == b,
    "isdisjoint": lambda a, b: a.isdisjoint(b),
    "check": lambda a, _: a.check(),
}


@pytest.mark.parametrize("device", one_of_each("emulated"))
@pytest.mark.parametrize("verb", ALGEBRA)
def test_set_algebra_stays_on_the_device(monkeypatch: pytest.MonkeyPatch, device: str, verb: str) -> None:
    copied = {}
    for n in (40, 1200):  # more than two levels of partial sums
        left, right = sets(n)
        with bytes_copied(monkeypatch) as sizes:
            answer = ALGEBRA[verb](left, right)
        copied[n] = max(sizes, default=0)
        expected = {"or": 3 * n // 2, "and": n // 2, "sub": n // 2, "xor": n}
        assert not isinstance(answer, HashSet) or len(answer) == expected[verb]
    assert copied[40] == copied[1200], "the largest copy does not grow with the sets"


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated"))
@pytest.mark.parametrize("dtype", ["u4", "i8", "S12", ("i4", (3,))])
def test_set_algebra_of_many_keys(device: str, dtype: Any) -> None:
    """More keys than one chunk of the sums that selected keys are packed by has, of words and of rows."""
    count = 700 if device == "emulated" else 100_000
    numbers = np.random.default_rng(1).permutation(2 * count)
    width = np.dtype(dtype).itemsize
    raw = np.zeros((2 * count, width), np.uint8)
    raw[:, :4] = numbers.astype("<u4").view(np.uint8).reshape(-1, 4) + (width == 12 and dtype == "S12")
    base, shape = np.dtype(dtype).subdtype or (np.dtype(dtype), ())
    keys = raw.view(base).reshape(2 * count, *shape)
    rows = np.unique(raw.view(f"V{width}").ravel())
    keys = np.ascontiguousarray(rows).view(base).reshape(len(rows), *shape)
    third = len(keys) // 3
    a, b = keys[: 2 * third], keys[third:]
    left, right = (HashSet.from_arrays(part, device=device) for part in (a, b))

    union, of_a, of_b = left | right, set(as_bytes(a)), set(as_bytes(b))
    for answer, expected in (
        (union, of_a | of_b),
        (left & right, of_a & of_b),
        (left - right, of_a - of_b),
        (left ^ right, of_a ^ of_b),
    ):
        assert set(as_bytes(answer.keys())) == expected
        assert answer <= union and (answer == left) == (expected == of_a)
        assert answer.isdisjoint(left) == expected.isdisjoint(of_a)


def test_sets_on_two_devices() -> None:
    left, right = sets(40)
    near = HashSet.from_arrays(right.keys(), device="cpu")
    assert (left & near) == (left & right) and (left & near).device == "emulated"
    assert near >= right and not near < right and near == right


def test_sets_are_equal_by_their_keys() -> None:
    some = HashSet.from_arrays(KEYS, device="cpu")
    assert some == HashSet.from_arrays(KEYS[::-1], device="cpu", design="slab")
    assert some != HashSet.from_arrays(KEYS[1:], device="cpu")
    assert some != HashSet.from_arrays(KEYS.astype("i4"), device="cpu") and some != set(KEYS.tolist())
    with pytest.raises(TypeError, match="unhashable"):
        hash(some)
    with pytest.raises(TypeError):
        some < {1}  # noqa: B015
    first = int(KEYS[0])
    for others in ({first}, [first], np.array([first]), iter([first, -5])):
        assert not some.isdisjoint(others)
    assert some.isdisjoint({int(KEYS.max()) + 1}) and some.isdisjoint(["text"]) and some.isdisjoint([])


def test_one_view_is_both_keys_and_values() -> None:
    table = HashMap("i8", "i8", device="cpu")
    seen = NUMPY.see(KEYS)
    assert table.insert(seen, seen).all() and (table.find(seen)[0] == KEYS).all()


@pytest.mark.parametrize("device", one_of_each("cpu", "emulated"))
@pytest.mark.parametrize("theirs", ["numpy", "fake"])
def test_keys_from_another_table(device: str, theirs: str, fake: Library) -> None:
    """They are of the kind that the other table was given, and no array of the table's own comes out."""
    kind = fakes if theirs == "fake" else np.asarray
    expected: type = Fake if theirs == "fake" else np.ndarray
    others = HashMap("int64", "float64", device=device), HashSet("int64", device="cpu")
    others[0].insert(kind(KEYS), kind(VALUES))
    others[1].insert(kind(KEYS))

    def empty(kind: Any) -> Any:
        return HashMap("int64", "float64", device="cpu") if kind is HashMap else HashSet("int64", device="cpu")

    def updated(other: Any) -> Any:
        table = empty(type(other))
        table.update(other)
        return table

    def in_place(other: Any) -> Any:
        table = empty(type(other))
        table |= other
        return table

    for other in others:
        for table in (updated(other), in_place(other), empty(type(other)) | other, updated(updated(other))):
            assert type(table.keys()) is expected and sorted(table.keys().tolist()) == KEYS.tolist()
            if isinstance(table, HashMap):
                assert [type(column) for column in table.to_arrays()] == [expected] * 2
            plan = table.plan(len(KEYS))
            assert np.asarray(plan.contains(kind(KEYS))).all()
            assert type(table.copy().keys()) is expected
    for table in (empty(HashSet) ^ others[1], empty(HashSet).union(others[1])):
        assert type(table.keys()) is expected
    kept = HashSet.from_arrays(KEYS[:1], device="cpu")
    kept |= others[1]
    assert type(kept.keys()) is np.ndarray, "the first keys were NumPy's"
