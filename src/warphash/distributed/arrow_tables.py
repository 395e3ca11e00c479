"""Tables of PyArrow on their way between ranks, as streams of its own format (Arrow IPC): columns of any type.

The owner of a row is that of the word of its key (`stream.key_hash`), whatever types the key columns have. Rows with
equal keys have one owner, also if the columns of two sides of a join have different types.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ..stream.key_hash import Words
from .channel import Call, Channel
from .exchange import Trip, travelled
from .route import spans_of
from .wire import column_of

__all__ = ["exchanged_table", "gathered_table", "joined_tables"]

Bytes = npt.NDArray[np.uint8]


def exchanged_table(channel: Channel, call: Call, table: Any, words: Words) -> tuple[Any, Trip]:
    """The rows of all ranks that this rank owns, those of rank 0 first; and their trip. Collective.

    Parameters
    ----------
    call
        Behind `Call.agree`.
    table
        This rank's rows, with the columns that all ranks have.
    words
        The word of each row's key.
    """
    trip = Trip(channel, call, [words])

    def messages() -> list[Bytes]:
        ordered = table.take(trip.positions())
        return [_written(ordered.slice(begin, end - begin)) for begin, end in spans_of(trip.counts_sent)]

    sent = call.together(messages)
    header = channel.header()
    header[-channel.world :] = torch.tensor([len(message) for message in sent])
    counts = call.agree(header)
    columns = call.together(lambda: [column_of(np.concatenate(sent), channel.place)])
    received = spans_of([row[channel.rank] for row in counts])
    (whole,) = travelled(channel, call, columns, spans_of(counts[channel.rank]), received, [_ANY])
    return call.together(lambda: joined_tables([_read(whole[begin:end]) for begin, end in received])), trip


def gathered_table(channel: Channel, call: Call, table: Any) -> Any:
    """The rows of all ranks on each rank, those of rank 0 first. Collective, behind `Call.agree`."""
    sent = call.together(lambda: _written(table))
    lengths = [int(n) for n in call.told(len(sent))]
    columns = call.together(lambda: [column_of(sent, channel.place)])
    received = spans_of(lengths)
    (whole,) = travelled(channel, call, columns, [(0, len(sent))] * channel.world, received, [_ANY])
    return call.together(lambda: joined_tables([_read(whole[begin:end]) for begin, end in received]))


_ANY = np.empty(0, np.uint8)


def joined_tables(tables: Sequence[Any]) -> Any:
    """Tables with the same columns as one, at least one. Columns with dictionaries have one dictionary."""
    import pyarrow as arrow

    return arrow.concat_tables(tables).unify_dictionaries()


def _written(table: Any) -> Bytes:
    import pyarrow as arrow

    sink = arrow.BufferOutputStream()
    with arrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return np.frombuffer(sink.getvalue(), np.uint8)


def _read(message: Bytes) -> Any:
    import pyarrow as arrow

    return arrow.ipc.open_stream(arrow.py_buffer(message)).read_all()
