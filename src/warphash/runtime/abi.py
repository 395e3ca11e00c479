"""What kernels are given, as ``ctypes`` mirrors of the structures in all ``abi.cuh``: a table and a batch.

Each field is one 64-bit word, addresses included, so the layout is the same under g++, nvcc and NVRTC. A launch is two
plain copies: of the table, built once, and of the batch, of which a call changes a few words. A family of kernels has
structures of its own; the headers say what each field means. 0 is "none" for an address.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

MAX_HASHES = 4
"""Hash functions a table can have (``multiplier`` and ``addend`` hold one constant each)."""

MOST_SUBTABLES = 8
"""Of a table (``subtables/lines.cuh``); arrays of one more have the reserved buckets last."""

RESERVED_SUBTABLE = MOST_SUBTABLES
"""Number of the subtable with the reserved buckets: of the keys that equal a mark of a slot (``core/slot.cuh``)."""

RESERVED_KEYS = 3
"""Keys that equal a mark of a slot."""

DISPLACED_CAPACITY = 1 << 20
"""Pairs that `InsertBatch.displaced` holds: more than the chains any device has in flight when the first one fails."""


def _words(*names: str) -> list[Any]:
    return [(name, ctypes.c_uint64) for name in names]


# ---- core/abi.cuh: what the families share
class Table(ctypes.Structure):
    """A table whose buckets lie in one array: its address, its size and its hash constants."""

    _fields_ = [
        *_words("slots", "buckets", "hashes", "family"),
        ("multiplier", ctypes.c_uint64 * MAX_HASHES),
        ("addend", ctypes.c_uint64 * MAX_HASHES),
    ]


class Launch(ctypes.Structure):
    """What the schedules take of any batch: how many elements there are, or where a list of them is."""

    _fields_ = _words("n", "indices", "count", "random", "report", "count_probes")


class Batch(Launch):
    """An operation on the keys of a table: its arrays, and what becomes of values."""

    _fields_ = [
        *_words("keys", "values", "out_keys", "out_values", "out_flags", "out_counts"),
        *_words("default_value", "room", "op", "kind"),
    ]


class InsertBatch(Batch):
    """An operation that may add keys by settle, claim and place: its scratch memory."""

    _fields_ = _words("leftover", "claims", "claim_mask", "winners", "losers", "displaced")


class PartitionBatch(Launch):
    """The elements of a large batch in the order of the parts of a table."""

    _fields_ = _words("keys", "values", "out_keys", "out_values", "part_sizes", "parts", "part_shift")


# ---- core/gpu/abi.cuh
class LookupPartitionBatch(PartitionBatch):
    """The keys of a large lookup in the order of the parts of a table, and its answers in the order of the caller."""

    _fields_ = _words("places", "runs", "flags", "out_flags")


# ---- buckets/abi.cuh
class BucketTable(Table):
    """A table of buckets, with the parameters of its design."""

    _fields_ = _words("early_exit", "chain_limit", "placement", "threshold", "probe_limit")


class BucketBatch(InsertBatch):
    """An operation on a table of buckets."""

    _fields_ = _words("source_slots", "source_buckets", "answer", "ticket", "adopts")


class BuildBatch(Launch):
    """The build of a table of buckets on a CPU."""

    _fields_ = _words(
        "keys",
        "values",
        "left_keys",
        "left_values",
        "chunks",
        "parts",
        "part_shift",
        "source_slots",
        "source_buckets",
    )


# ---- chains/abi.cuh
class ChainTable(Table):
    """A table of lists, with its pool of nodes."""

    _fields_ = _words("pool", "pool_units", "tails")


class ChainBatch(Batch):
    """An operation on a table of lists."""

    _fields_ = _words("operations", "offsets", "first_list", "source_nodes", "source_buckets", "source_pool")


class SlabBatch(Launch):
    """Slabs that are taken or given back without a table."""

    _fields_ = _words("addresses")


# ---- subtables/abi.cuh
class SubtableTable(ctypes.Structure):
    """Several subtables, each with a size of its own, and the routing of keys among them."""

    _fields_ = [
        *_words("subtables", "family", "digest_point"),
        ("salts", ctypes.c_uint64 * MOST_SUBTABLES),
        ("addend", ctypes.c_uint64 * MAX_HASHES),
        *_words("routing_salt", "chain_limit", "early_exit", "coordination", "value_bytes"),
        *[(name, ctypes.c_uint64 * (MOST_SUBTABLES + 1)) for name in ("bases", "sizes", "bucket_words")],
        *[(name, ctypes.c_uint64 * MOST_SUBTABLES) for name in ("route_ends", "least_begins", "most_ends")],
    ]


class SubtableBatch(InsertBatch):
    """An operation on subtables."""

    _fields_ = [
        *_words("displaced_values", "spare_values", "unique", "adopts", "closed"),
        *_words("subtable", "source_lines", "source_buckets", "answer", "restarts"),
    ]


# ---- tickets/abi.cuh
class TicketTable(Table):
    """A table with a ticket board."""

    _fields_ = _words(
        *("board", "emptied", "access", "ticket_shift", "of_family", "waits", "value_bytes", "keeps_emptied"),
        *("versions", "version_mask"),
    )


class TicketBatch(InsertBatch):
    """An operation on a table with a ticket board."""

    _fields_ = _words("operations", "source_slots", "source_board")


class SweepBatch(TicketBatch):
    """A batch that goes through the slots window by window."""

    _fields_ = _words("targets", "tried", "waiting", "window_first", "window_slots", "sampled")

    @classmethod
    def of(cls, batch: TicketBatch, **fields: int) -> Self:
        """A batch, with fields of its way through the windows."""
        swept = cls(**fields)
        ctypes.memmove(ctypes.addressof(swept), ctypes.addressof(batch), ctypes.sizeof(TicketBatch))
        return swept


# ---- two_level/abi.cuh
class TwoLevelTable(Table):
    """A two-level table: a directory, and what its placements may try."""

    _fields_ = _words("directory", "counters", "reserved", "round_limit", "seed_limit")


class TwoLevelBatch(InsertBatch):
    """An operation on a two-level table."""

    _fields_ = [
        *_words("chain", "touched", "touched_count", "source_slots", "source_keys"),
        *_words("moves", "first_bucket", "ranges", "range_slots"),
    ]


# ---- quotient/abi.cuh
class QuotientTable(Table):
    """A quotient table: how its buckets form ranges, and what a batch keeps of each range."""

    _fields_ = _words("ranges", "range_buckets", "inverse", "counters", "starts")


class QuotientBatch(Batch):
    """An operation on a quotient table."""

    _fields_ = [
        *_words("brought", "numbers", "left", "touched", "erases", "first_bucket", "heavy", "unique"),
        *_words("crowds", "rest"),
    ]


RANGE_LISTS_BYTES = 4 + 4 + 16
"""For each range that a batch may touch: its number in the lists ``touched`` and ``heavy``, and a ``Crowd``."""


class TakeOverBatch(QuotientBatch):
    """The buckets of a quotient table that another one takes over."""

    _fields_ = _words("source_slots", "source_buckets", "source_range_buckets")


class OneLaunchBatch(QuotientBatch):
    """A batch for a quotient table that is one launch, but for elements that it leaves."""

    _fields_ = _words("left_out")


class FewBatch(OneLaunchBatch):
    """An update of few elements of a quotient table, which leaves none."""

    _fields_ = _words("adopted_keys", "adopted_values", "goes_on", "answer", "ticket")


class PassBatch(Launch):
    """A pass over the elements of a large batch for a quotient table."""

    _fields_ = [
        *_words("keys", "values", "source", "target", "places", "touched", "parts", "part_shift", "given"),
        *_words("tiles", "most_tiles", "share", "bin_ranges"),
    ]


# ---- strings/abi.cuh
STRING_SECRETS = 6
"""Random words of a hash function of strings (``kStringSecrets``)."""


class StringRow(ctypes.Structure):
    """Where the bytes of a string are."""

    _fields_ = _words("address", "length")


class StringIndex(ctypes.Structure):
    """The numbers of strings, and their bytes."""

    _fields_ = [
        *_words("slots", "bits", "strings", "arena", "free_numbers", "free_count", "first", "counters", "hash_mask"),
        ("secrets", ctypes.c_uint64 * STRING_SECRETS),
    ]


class StringCounters(ctypes.Structure):
    """What interning has used."""

    _fields_ = _words("taken", "bytes", "pending")


class StringBatch(Launch):
    """Strings and their numbers."""

    _fields_ = _words("rows", "numbers", "slots", "offsets", "bytes", "hashes")


# ---- rows/abi.cuh
class StoredRows(ctypes.Structure):
    """Rows that a store keeps."""

    _fields_ = _words("rows", "stored_bytes")


class RowBatch(Launch):
    """Rows of the caller, and stored rows."""

    _fields_ = [
        *_words("rows", "row_bytes", "numbers", "flags", "out_rows", "default_row", "list", "listed_flag"),
        *_words("fingerprints", "cells", "cell_count", "claims_found", "free_list", "free_rows", "end"),
        *_words("out_fingerprints", "out_numbers", "op", "kind"),
    ]


class WordBatch(Launch):
    """Rows, and words or longer rows that hold them."""

    _fields_ = _words("rows", "row_bytes", "words", "word_bytes")


class SampleBatch(Launch):
    """Rows, and a sample of them."""

    _fields_ = _words("rows", "row_bytes", "row_count", "out_rows")


class FingerprintBatch(Launch):
    """Rows to fingerprints, or into a sketch."""

    _fields_ = _words("rows", "row_bytes", "salt", "fingerprints", "registers")


class CountBatch(Launch):
    """Counts to their sums."""

    _fields_ = _words("counts", "length", "sums", "starts", "offsets")


# ---- aggregates/abi.cuh
class Aggregation(ctypes.Structure):
    """How blocks spread keys over their entries."""

    _fields_ = _words("seed")


class AggregateBatch(Launch):
    """Elements of an update that changes values: in, and out with fewer copies of the hot keys."""

    _fields_ = _words("keys", "values", "op", "kind", "out_keys", "out_values", "elements", "length")


class SpreadBatch(Launch):
    """The flags of the elements that were left, back to the batch."""

    _fields_ = _words("elements", "flags", "out_flags")


# ---- bounded/abi.cuh
class FrequencySketch(ctypes.Structure):
    """A count-min sketch of how often keys were accessed."""

    _fields_ = _words("counters", "lines", "seed")


class AccessBatch(Launch):
    """Keys that were accessed, or that are to be ranked."""

    _fields_ = _words("keys", "key_bytes", "flags", "out_ranks")


class Ranks(ctypes.Structure):
    """Ranks of the stored rows, or of the elements of a batch."""

    _fields_ = _words("ranks")


class TouchBatch(Launch):
    """Stored rows whose ranks change."""

    _fields_ = _words("numbers", "flags", "flag", "clock", "given", "renews")


class ScoreBatch(Launch):
    """Scores of the caller's to ranks."""

    _fields_ = _words("rows", "row_bytes", "kind")


class SelectBatch(Launch):
    """The search of the least ranks, and the keys that have them."""

    _fields_ = [
        *_words("length", "histogram", "bins", "shift", "prefix", "prefix_shift"),
        *_words("last", "ties", "ticket", "keys", "key_bytes", "out_keys"),
    ]


class CompareBatch(Launch):
    """Numbers that are compared with a bound, and the keys beside them."""

    _fields_ = _words("rows", "row_bytes", "kind", "ranked", "comparison", "bound", "keys", "key_bytes", "out_keys")


# ---- reports
REPORT_LINES = 32
"""Lines of counts in a report, and as many of signals, which the threads of a launch share (``core/report.cuh``)."""

COUNT_WORDS = 8 + 8 * REPORT_LINES
"""Words of 64 bits that the host reads: a line of lengths, then the lines of counts."""

REPORT_WORDS = COUNT_WORDS + 8 * REPORT_LINES
"""Words of a report."""

FEW_REPORT_WORDS = 2
"""Words of a ``FewReport``: the numbers of added keys and of adopted pairs."""

LEFTOVER, WINNERS, LOSERS, CROWDS = 0, 8, 16, 40
"""Where the lengths of a report's lists are, in bytes."""

LISTS_BYTES = 3 * 8
"""So many bytes of a report are zeroed to restart the lists for the next piece of a batch."""


_NONE_PLACED = (0,) * MOST_SUBTABLES


class Report(NamedTuple):
    """What the kernels of one bulk operation counted, summed over the lines; all zero before the first of them."""

    leftover: int
    winners: int
    displaced: int
    unplaced: int
    changed: int
    probes: int
    mismatches: int
    erased: int
    placed: tuple[int, ...] = ()
    """Keys added to, or erased from, each subtable."""
    crowds: int = 0
    chunks: int = 0
    """Crowded ranges of a quotient table, and the chunks of their elements (``quotient/crowds.cuh``)."""

    @classmethod
    def of(cls, words: npt.NDArray[np.uint64]) -> Report:
        """Read the first `COUNT_WORDS` words of ``struct Report``."""
        leftover, winners, _, displaced, unplaced, crowds, _, _ = words[:8].tolist()
        sums = np.add.reduce(words[8:].reshape(REPORT_LINES, 8))
        changed, probes, mismatches, erased, *pairs = sums.tolist()
        placed = _NONE_PLACED
        if any(pairs):
            placed = tuple(sums[4:].view(np.uint32).tolist())  # two counts in each word, the lower one first
            changed += sum(placed)
        counts = leftover, winners, displaced, unplaced, changed, probes, mismatches, erased
        return cls(*counts, placed, crowds >> 32, crowds & 0xFFFFFFFF)


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


class Comparison(IntEnum):
    """How a number is compared with a bound (``enum Comparison`` of ``bounded/bounded.cuh``)."""

    LESS = 0
    LESS_EQUAL = 1
    EQUAL = 2
    UNEQUAL = 3
    GREATER_EQUAL = 4
    GREATER = 5


def kind_of(dtype: np.dtype[Any]) -> int:
    """How the kernels read a value of ``dtype``: class in the low byte, bits above it (``enum Kind``)."""
    return {"i": 1, "f": 2}.get(dtype.kind, 0) | (8 * dtype.itemsize) << 8


def bytes_of(kind: int) -> int:
    """Bytes of a value of a kind that `kind_of` gave."""
    return kind >> 11


class Flag(IntEnum):
    """What an update did for one element (``enum Flag`` of ``abi.cuh``)."""

    PRESENT = 0
    CHANGED = 1
    UNPLACED = 2
