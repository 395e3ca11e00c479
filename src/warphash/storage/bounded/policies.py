"""Which keys leave a bounded table first: a policy gives each key a rank, and the keys of least rank leave.

Two kinds of policies. "fifo", "lru" and "score" keep a rank for each row, so their tables keep keys and values in rows
(`wide_rows.py`). "lfu" and "random" compute a rank from the key when keys have to leave, so their tables are laid out
as if they had no bound.
"""

from __future__ import annotations

import random
from itertools import count
from typing import Any, Protocol

from ...runtime.abi import AccessBatch, Flag, FrequencySketch, Ranks, TouchBatch
from ...runtime.engine import Engine, Program
from ...runtime.source import BOUNDED
from ..wide_rows import Touch, TouchedRows
from .sketch import Sketch

__all__ = ["Clocked", "Frequent", "Policy", "Random", "Scored", "make_policy"]


class Policy(Protocol):
    """What decides which keys leave.

    Attributes
    ----------
    keeps_ranks
        The ranks lie beside the rows (`touch`). Otherwise `rank` computes them.
    ranks_rise
        Whoever comes or is used gets a rank above all others, if the caller gives no ranks. Others keep theirs.
    """

    keeps_ranks: bool
    ranks_rise: bool

    @property
    def nbytes(self) -> int:
        """Bytes of memory, without the ranks of rows."""

    def touch(self, given: int, stream: Any) -> Touch | None:
        """What sets the ranks of the rows that one batch reaches; None where no ranks are kept.

        ``given`` is the address of ranks, uint64, one for each element of an update; or 0.
        """

    def record(self, keys: int, n: int, stream: Any, flags: int = 0) -> None:
        """Note an access of each key, or of those whose flag is set. Allocates nothing."""

    def rank(self, keys: int, n: int, out: int, stream: Any) -> None:
        """Write the rank of each key to ``out``, uint64."""

    def clear(self, stream: Any) -> None:
        """Forget all keys."""

    def resume(self, greatest: int) -> None:
        """Go on behind ranks that an earlier table gave, of which ``greatest`` is the greatest."""

    def copy(self, stream: Any) -> Policy: ...


class _InRows:
    """What policies have in common that keep the rank of each row."""

    keeps_ranks = True
    nbytes = 0

    def __init__(self, engine: Engine) -> None:
        self._program: Program = engine.program(BOUNDED)

    def record(self, keys: int, n: int, stream: Any, flags: int = 0) -> None:
        """Do nothing: the rows are touched."""

    def rank(self, keys: int, n: int, out: int, stream: Any) -> None:
        raise AssertionError("the ranks lie beside the rows")

    def clear(self, stream: Any) -> None:
        """Do nothing: a key that comes back is a new key."""

    def _set(self, rows: TouchedRows, stream: Any, *, clock: int = 0, given: int = 0, renews: bool = False) -> None:
        flag = Flag.PRESENT if rows.stage == "present" else Flag.CHANGED
        batch = TouchBatch(n=rows.n, numbers=rows.numbers, flags=rows.flags, flag=flag)
        batch.clock, batch.given, batch.renews = clock, given, renews
        self._program.run("touch", Ranks(ranks=rows.ranks), batch, rows.n, stream)


class Clocked(_InRows):
    """The rank of a key is the time at which it came ("fifo"), or was last used ("lru"). Time is the number of batches.

    Parameters
    ----------
    renews
        A use of a key renews its rank.
    """

    ranks_rise = True

    def __init__(self, engine: Engine, *, renews: bool) -> None:
        super().__init__(engine)
        self._engine, self._renews = engine, renews
        self._clock = count(1)  # whose next() is one step to other threads

    def touch(self, given: int, stream: Any) -> Touch | None:
        now = next(self._clock)

        def touch(rows: TouchedRows) -> None:
            if rows.stage == "new":
                self._set(rows, stream, clock=now, given=given)
            elif self._renews:
                self._set(rows, stream, clock=now, given=given, renews=True)

        return touch

    def resume(self, greatest: int) -> None:
        self._clock = count(greatest + 1)

    def copy(self, stream: Any) -> Clocked:
        twin = Clocked(self._engine, renews=self._renews)
        twin.resume(next(self._clock))
        return twin


class Scored(_InRows):
    """The rank of a key is that of the score which the caller gave with it.

    A new key takes the score of the element that added it. Of a key that is there, an update that changes values also
    sets the score; of several elements with the key, one sets it.
    """

    ranks_rise = False

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._engine = engine

    def touch(self, given: int, stream: Any) -> Touch | None:
        if not given:
            return None

        def touch(rows: TouchedRows) -> None:
            if rows.stage == "new" or rows.changes_values:
                self._set(rows, stream, given=given)

        return touch

    def resume(self, greatest: int) -> None:
        """Do nothing: scores follow no clock."""

    def copy(self, stream: Any) -> Scored:
        return Scored(self._engine)


class Frequent:
    """The rank of a key is how often it was accessed ("lfu"): by an update, or by a find that found it.

    The frequencies are those of `Sketch`. A key that left keeps its count there, and a new key has to have been
    accessed more often than the others to stay: a scan of keys that come once drives out no frequent key.
    """

    keeps_ranks = ranks_rise = False

    def __init__(self, sketch: Sketch) -> None:
        self.sketch = sketch

    @property
    def nbytes(self) -> int:
        return self.sketch.nbytes

    def touch(self, given: int, stream: Any) -> Touch | None:
        return None

    def record(self, keys: int, n: int, stream: Any, flags: int = 0) -> None:
        self.sketch.record(keys, n, stream, flags)

    def rank(self, keys: int, n: int, out: int, stream: Any) -> None:
        self.sketch.rank(keys, n, out, stream)

    def clear(self, stream: Any) -> None:
        self.sketch.clear(stream)

    def resume(self, greatest: int) -> None:
        """Do nothing: no ranks are kept."""

    def copy(self, stream: Any) -> Frequent:
        return Frequent(self.sketch.copy(stream))


class Random:
    """The rank of a key is a random number ("random"), another one each time that keys have to leave."""

    keeps_ranks = ranks_rise = False
    nbytes = 0

    def __init__(self, engine: Engine, key_bytes: int, seed: int) -> None:
        self._engine, self._key_bytes, self._seed = engine, key_bytes, seed
        self._random = random.Random(seed)

    def touch(self, given: int, stream: Any) -> Touch | None:
        return None

    def record(self, keys: int, n: int, stream: Any, flags: int = 0) -> None:
        """Do nothing."""

    def rank(self, keys: int, n: int, out: int, stream: Any) -> None:
        drawn = FrequencySketch(seed=self._random.getrandbits(64))
        batch = AccessBatch(n=n, keys=keys, key_bytes=self._key_bytes, out_ranks=out)
        self._engine.program(BOUNDED).run("at_random", drawn, batch, n, stream)

    def clear(self, stream: Any) -> None:
        """Do nothing."""

    def resume(self, greatest: int) -> None:
        """Do nothing: no ranks are kept."""

    def copy(self, stream: Any) -> Random:
        twin = Random(self._engine, self._key_bytes, self._seed)
        twin._random.setstate(self._random.getstate())
        return twin


def make_policy(name: str, engine: Engine, max_size: int, key_bytes: int, seed: int) -> Policy:
    """The policy of a name, one of `bound.EVICT`, for a table of at most ``max_size`` keys."""
    match name:
        case "lfu":
            return Frequent(Sketch(engine, max_size, key_bytes, seed))
        case "random":
            return Random(engine, key_bytes, seed)
        case "score":
            return Scored(engine)
        case _:
            return Clocked(engine, renews=name == "lru")
