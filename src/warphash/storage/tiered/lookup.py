"""A lookup in two tiers: while the home answers for one piece of a batch, the cache is asked for the next piece.

The home's threads determine the time of a lookup, and the device has little to do. So what the device does for piece
i + 1 is launched before the home is asked for piece i:

  device   find 0 | pack 0, copy keys 0 home | find 1 |        values 0 back | pack 1, copy keys 1 home | find 2 | ...
  home                                                  find 0               |                           find 1 | ...

Two rooms take turns. The keys of piece i + 2 come to the room of piece i behind the copy of the answers there, since
both copies are on one stream.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, NamedTuple

from ...runtime.abi import Flag
from ...runtime.engine import Buffer
from ..chosen_elements import Listing, Part, listing
from . import home as homes
from .home import Room
from .writing import Tiers

__all__ = ["look_up"]


class _Batch(NamedTuple):
    """What is asked, and where the answers go: addresses; ``values`` may be 0."""

    keys: int
    values: int
    flags: int
    default: bytes
    stream: Any


class _Sent(NamedTuple):
    """Keys of a piece that are on their way home."""

    at: int
    part: Part
    keys: Buffer
    room: Room


def look_up(tiers: Tiers, keys: int, n: int, values: int, flags: int, default: bytes, stream: Any) -> None:
    """Values and flags of ``n`` keys, as of `Rows.find`. Notes candidates for the cache."""
    batch, piece = _Batch(keys, values, flags, default, stream), homes.PIECE
    starts = range(0, n, piece)
    misses = 0
    with ExitStack() as rooms:
        turns = [rooms.enter_context(tiers.home.room(min(n, piece), stream)) for _ in starts[:2]]
        listed = [_ask_cache(tiers, batch, at, min(piece, n - at)) for at in starts[:1]]
        for number, at in enumerate(starts):
            sent = _send_home(tiers, batch, at, listed.pop(), turns[number % 2])
            misses += sent.part.n
            for upcoming in starts[number + 1 : number + 2]:
                listed.append(_ask_cache(tiers, batch, upcoming, min(piece, n - upcoming)))
            if sent.part.n:
                _answer(tiers, batch, sent)
    tiers.cache.count(n, misses)


def _ask_cache(tiers: Tiers, batch: _Batch, at: int, n: int) -> Listing:
    """Ask the cache for a piece, and list who is not there."""
    values = batch.values and batch.values + at * tiers.value_bytes
    keys, flags = batch.keys + at * tiers.key_bytes, batch.flags + at
    tiers.cache.find(keys, n, values, flags, batch.default, batch.stream)
    return listing(tiers.engine, flags, n, Flag.PRESENT, batch.stream)


def _send_home(tiers: Tiers, batch: _Batch, at: int, listed: Listing, room: Room) -> _Sent:
    """Pack the keys that are not in the cache, and send them home."""
    part = listed.part(batch.stream)
    keys = part.packed(batch.keys + at * tiers.key_bytes, tiers.key_bytes, batch.stream)
    if part.n:
        tiers.home.send(room, keys.ptr, part.n, batch.stream)
    return _Sent(at, part, keys, room)


def _answer(tiers: Tiers, batch: _Batch, sent: _Sent) -> None:
    """Have the home answer, put the answers to their places, and propose who was found to the cache."""
    engine, width, stream, part = tiers.engine, tiers.value_bytes, batch.stream, sent.part
    values, flags = engine.allocate(max(1, part.n * width), stream), engine.allocate(part.n, stream)
    default = batch.default.ljust(width, b"\0")
    tiers.home.answer(sent.room, part.n, values.ptr, flags.ptr, default, stream)
    if batch.values:
        part.put(values, batch.values + sent.at * width, width, stream)
    part.put(flags, batch.flags + sent.at, 1, stream)
    tiers.cache.propose(sent.keys, flags, part.n, stream)
