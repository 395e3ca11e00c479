"""A program as a user with a type checker writes it: no result is `Any`. Two checkers read it, and a test runs it."""

import numpy as np
from numpy.typing import NDArray

import warphash
from warphash import HashMap, HashSet, MultiMap

Ids = NDArray[np.int64]
Rows = NDArray[np.uint32]


class Vocabulary:
    """Numbers for ids, in the order in which ids come."""

    def __init__(self, capacity: int) -> None:
        self.rows = HashMap(np.int64, np.uint32, capacity=capacity, device="cpu", design="iceberg", seed=1)

    def learn(self, ids: Ids) -> Rows:
        """The row of each id, new ids included."""
        unknown: Ids = np.unique(ids[~self.rows.contains(ids)])
        first = len(self.rows)
        self.rows.insert(unknown, np.arange(first, first + len(unknown), dtype=np.uint32))
        return self.rows[ids]

    def known(self, ids: Ids, default: int = 0) -> tuple[Rows, NDArray[np.bool_]]:
        """The row of each id, and whether it has one."""
        rows, found = self.rows.find(ids, default)
        return rows, found & (rows != default)

    def row(self, one: int) -> np.uint32 | None:
        """The row of one id."""
        return self.rows.get(one)

    def names(self) -> dict[np.int64, np.uint32]:
        """All ids, and their rows."""
        return dict(self.rows.items())


def counted(words: NDArray[np.bytes_]) -> list[tuple[bytes, int]]:
    """How often each word comes."""
    counts = HashMap(words.dtype, np.dtype(np.int64), device="cpu")
    new = counts.upsert(words, 1, "add")
    held, totals = counts.to_arrays()
    assert int(new.sum()) == len(held)
    order = np.argsort(-totals)
    return [(bytes(word), int(total)) for word, total in zip(held[order], totals[order], strict=True)]


def joined(left: Ids, right: Ids, names: NDArray[np.bytes_]) -> tuple[NDArray[np.bytes_], Ids]:
    """All names of each id, and where those of each id begin."""
    table = MultiMap.from_arrays(right, names, device="cpu")
    values, offsets = table.find_all(left)
    return values, offsets


def run() -> bool:
    """Use all of it."""
    vocabulary = Vocabulary(capacity=100)
    batch = np.array([[7, 8, 9], [7, 7, 10]], dtype=np.int64)
    rows = vocabulary.learn(batch)
    seen = HashSet.from_arrays(batch.reshape(-1), device="cpu")
    names, offsets = joined(batch[0], np.array([7, 7, 9]), np.array([b"a", b"b", b"c"]))
    return (
        rows.shape == (2, 3)
        and int(rows.max()) == 3
        and bool(vocabulary.known(batch, default=99)[1].all())
        and vocabulary.row(7) == 0
        and vocabulary.row(5) is None
        and len(vocabulary.names()) == len(seen & seen) == 4
        and counted(np.array([b"x", b"y", b"x"])) == [(b"x", 2), (b"y", 1)]
        and (len(names), offsets.tolist()) == (3, [0, 2, 2, 3])
        and bool((np.sort(seen.keys()) == [7, 8, 9, 10]).all())
        and warphash.get_num_threads() > 0
    )
