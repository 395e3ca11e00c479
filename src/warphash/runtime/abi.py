"""The two structures that every kernel takes, as ``ctypes`` mirrors of ``kernels/core/abi.cuh``.

Each field is one 64-bit word, pointers included, so the layout is the same under g++, nvcc and NVRTC, and a
launch is two plain copies: the `Table`, built once per table, and the `Batch`, of which a call changes a few words.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

MAX_HASHES = 4
"""Hash functions a table can have (``Table.multiplier`` and ``Table.addend`` hold one constant each)."""

MOST_SUBTABLES = 8
"""Of a table (``subtables/lines.cuh``); arrays of one more have the annex last."""

ANNEX = MOST_SUBTABLES
"""Number of the subtable that has the keys which equal a mark."""

HOMELESS_CAPACITY = 1 << 20
"""Pairs that `Batch.homeless` holds: more than the chains any device has in flight when the first one fails."""


def _words(*names: str) -> list[tuple[str, type[ctypes.c_uint64]]]:
    return [(name, ctypes.c_uint64) for name in names]


class Table(ctypes.Structure):
    """What a table is, on the device: addresses, sizes and hash constants. Passed by value."""

    _fields_ = [
        *_words("slots", "buckets", "hashes", "threshold", "chain_limit", "family", "placement", "early_exit"),
        *_words("pool", "pool_units", "tails"),
        ("multiplier", ctypes.c_uint64 * MAX_HASHES),
        ("addend", ctypes.c_uint64 * MAX_HASHES),
        *_words("coordination", "value_bytes"),
        *[(name, ctypes.c_uint64 * (MOST_SUBTABLES + 1)) for name in ("bases", "sizes", "salts")],
        *[(name, ctypes.c_uint64 * MOST_SUBTABLES) for name in ("shares", "least_begins", "most_ends")],
        *_words("probe_limit"),
        ("bucket_words", ctypes.c_uint64 * (MOST_SUBTABLES + 1)),
    ]


class Batch(ctypes.Structure):
    """One bulk operation: its arrays, its scratch memory and its report. Passed by value. 0 is "none"."""

    _fields_ = _words(
        "n",  # elements that this launch walks over (at most 2**31)
        "keys",  # slot-width keys, one per element
        "values",  # slot-width values, one per element
        "indices",  # uint32 list: walk keys[indices[i]] for i < *count instead of keys[i] for i < n
        "count",  # address of the uint64 that holds the list's length
        "out_keys",
        "out_values",
        "out_flags",  # uint8 per element
        "out_counts",  # uint32 per element: buckets read
        "default_value",  # what find writes for an absent key
        "op",  # Op: what a present key's value becomes
        "kind",  # Kind: how the bits of a value are read
        "random",  # seed of the victims, and of the claims
        "report",  # Report
        "leftover",  # uint32 list: elements that settle left for claim and place
        "claims",  # uint32 array of claim_mask + 1 words, all ones
        "claim_mask",
        "winners",  # uint32 list
        "losers",  # uint32 list
        "homeless",  # pairs whose chain ended: HOMELESS_CAPACITY slots
        "count_probes",  # 1: sum the buckets read into Report.probes
        "source_buckets",  # migrate, relist: hashed buckets of the table whose slots ``keys`` points at
        "source_pool",  # relist: address of its pool
        "answer",  # one-block kernels: where, in memory of the host, the outcome goes
        "ticket",  # and what its first word becomes
        "operations",  # execute: uint8 Operation, one per element
        "parts",  # partition: how many, at most `policies.MOST_PARTS`
        "part_shift",  # and the logarithm of the buckets of each
        "homeless_values",  # the values of ``homeless``, where they lie apart from keys
        "spare_values",  # a value's room for each element, where values are no words
        "subtable",  # that is resized, scanned or audited
        "closed",  # the subtable, plus one, that nothing is placed in
        "unique",  # 1: the caller vouches that keys do not repeat, and are not in the table
        "adopts",  # 1: elements that find no slot become homeless, too
    )


REPORT_LINES = 32
"""Lines of counts in a report, and as many of signals, which the threads of a launch share (``core/report.cuh``)."""

COUNT_WORDS = 8 + 8 * REPORT_LINES
"""Words of 64 bits that the host reads: a line of lengths, then the lines of counts."""

REPORT_WORDS = COUNT_WORDS + 8 * REPORT_LINES
"""Words of a report."""

LEFTOVER, WINNERS, LOSERS = 0, 8, 16
"""Where the lengths of a report's lists are, in bytes."""

LISTS_BYTES = 3 * 8
"""So many bytes of a report are zeroed to restart the lists for the next piece of a batch."""


class Report(NamedTuple):
    """What the kernels of one bulk operation counted, summed over the lines; all zero before the first of them."""

    leftover: int
    winners: int
    homeless: int
    unplaced: int
    changed: int
    probes: int
    mismatches: int
    erased: int
    placed: tuple[int, ...] = ()
    """Keys added to, or erased from, each subtable."""

    @classmethod
    def of(cls, words: npt.NDArray[np.uint64]) -> Report:
        """Read the first `COUNT_WORDS` words of ``struct Report``."""
        leftover, winners, _, homeless, unplaced = words[:5].tolist()
        changed, probes, mismatches, erased, *pairs = words[8:].reshape(REPORT_LINES, 8).sum(axis=0).tolist()
        placed = tuple(count for pair in pairs for count in (pair & 0xFFFFFFFF, pair >> 32))
        return cls(leftover, winners, homeless, unplaced, changed + sum(placed), probes, mismatches, erased, placed)


class Op(IntEnum):
    """What becomes of the value of a key that is there already (``enum Op`` of ``abi.cuh``)."""

    KEEP = 0
    REPLACE = 1
    ADD = 2
    MIN = 3
    MAX = 4
    OR = 5
    AND = 6
    XOR = 7


class Operation(IntEnum):
    """What an element of a mixed batch does (``enum Operation`` of ``abi.cuh``)."""

    FIND = 0
    INSERT = 1
    ASSIGN = 2
    ERASE = 3


def kind_of(dtype: np.dtype[Any]) -> int:
    """How the kernels read a value of ``dtype``: class in the low byte, bits above it (``enum Kind``)."""
    return {"i": 1, "f": 2}.get(dtype.kind, 0) | (8 * dtype.itemsize) << 8


class Flag(IntEnum):
    """What an update did for one element (``enum Flag`` of ``abi.cuh``)."""

    PRESENT = 0
    CHANGED = 1
    UNPLACED = 2
