"""Lookups whose answers stay with the owners of the keys: ``order="owner"`` of the verbs of sharded tables.

The keys go to their owners as the rows of `exchange.exchange` do, each owner asks its own table, and nothing travels
back. So what a rank gets is an `Exchanged`: the keys that arrived, in the order in which they did, with the answers
beside them. What an owner computes of these can be brought back (`Exchanged.back`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..arrays.batch import library_of_rows
from ..arrays.cast import chosen
from ..arrays.library import ArrayView
from ..arrays.row_type import Column as Type
from ..arrays.strings import StringArray
from ..errors import ParameterError
from .channel import Call, Channel
from .exchange import Exchanged, Trip
from .ragged import Ragged, hashed_rows, write_rows
from .route import Column, Rows, copied

__all__ = ["Ask", "check_order", "left_with_owners"]

Ask = Callable[[ArrayView], Sequence[tuple[Type, Any]]]
"""Asks a rank's own table for keys in the engine's memory: arrays there, or strings, and the types of their rows."""

ArrayAt = Callable[[int, int, Type], ArrayView]
"""Rows at an address, so many of a type, as an array that tables take."""


def check_order(order: str) -> None:
    """Raise `ParameterError` for an order of answers that sharded tables do not have, other than ``"given"``."""
    if order != "owner":
        raise ParameterError(
            f'order must be "given" or "owner", got {order!r}: "owner" leaves the answers with the owners of the keys'
        )


def left_with_owners(
    channel: Channel, call: Call, front: Any, array_at: ArrayAt, keys: Any, stream_of: Any, ask: Ask
) -> Exchanged:
    """The keys of all ranks that this rank owns, and the answers of its table. Of a call that is announced here.

    Parameters
    ----------
    front, array_at, stream_of
        Of the sharded table: the front of the local one, `ArrayAt`, and what tells the stream of an array.
    keys
        Of this rank. Those that the key type does not have are left out, since no rank owns them.
    """
    given, fits = front.sought(keys)
    seen = given if fits is None else chosen(given, fits)
    like = seen._replace(library=library_of_rows(seen.library))
    stream = stream_of(seen)
    key, engine = front.key, front.engine
    made: list[Exchanged] = []

    def body(n: int, at: list[int], to: list[int]) -> None:
        rows = copied(channel, engine, Rows(at[0], key.nbytes), n).matrix(n)
        named = hashed_rows(channel, engine, at[0], n).matrix(n) if key.has_any_length else rows
        call.agree()
        trip = Trip(channel, call, [named])
        arrived = trip.go_ragged(call, engine, rows) if key.has_any_length else trip.go(call, [rows])[0]
        made.append(call.together(lambda: answer(trip, arrived)))

    def answer(trip: Trip, arrived: Any) -> Exchanged:
        n = trip.n_received
        if isinstance(arrived, Ragged):
            place = Column(channel.memory(n * key.nbytes), key.nbytes)
            write_rows(arrived.lengths, arrived.data, n, place.at)
            own, own_keys = array_at(place.at, n, key), exported(key, arrived.strings(key.text))
        else:
            own = array_at(arrived.data_ptr(), n, key)
            own_keys = exported(key, own)
        return Exchanged(trip, own_keys, [exported(column, rows) for column, rows in ask(own)])

    def exported(column: Type, rows: ArrayView | StringArray) -> Any:
        if isinstance(rows, StringArray):
            return column.exported(rows, like.library)
        source, nbytes = rows.ptr, rows.nbytes

        def write(n: int, at: list[int], to: list[int]) -> None:
            engine.copy(to[0], source, nbytes, channel.stream())

        out = front.rows_for(like, column, rows.rows)
        front.run(write, [], [out], stream)
        return column.exported(out, like.library)

    front.run(body, [seen], [], stream)
    return made[0]
