"""The families of designs: how each lays pairs out, and what follows for storage, kernels and benchmarks.

A design names its layout. Everything else asks the layout and not for the family: the storage, the writer of C++, the
build of the extension, the benchmarks. So a new family is a class here, and a folder of its name under ``kernels`` and
under ``storage``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

__all__ = [
    "BUCKETS",
    "BUCKET_WORDS_BYTES",
    "FILTER_WORDS_BYTES",
    "SLAB_BYTES",
    "Buckets",
    "Chains",
    "Layout",
    "Quotients",
    "Reads",
    "SlotTypes",
    "Subtables",
    "Tickets",
    "Tiers",
    "TwoLevel",
]

SLAB_BYTES = 128
"""Of a slab of a slab list."""

FILTER_WORDS_BYTES = 8
"""Of a bucket of a subtable: its overflow filter, which a find may read."""

BUCKET_WORDS_BYTES = 4 + FILTER_WORDS_BYTES
"""The lock and the filter."""

_ROW_BYTES = 12
"""Stands for all widths of a value that is no word."""


@dataclass(frozen=True)
class SlotTypes:
    """The slots of a design as kernels are compiled for them.

    Attributes
    ----------
    word_bytes
        Width of a key as kernels take it.
    value_bytes
        Width of a value beside it; 0 for none.
    slots_per_bucket
        Of a line of subtables, the keys that it has.
    own_widths
        As `Layout.own_widths`.
    """

    word_bytes: int
    value_bytes: int
    slots_per_bucket: int
    own_widths: bool = False

    @property
    def value_is_row(self) -> bool:
        """Kernels carry the address of a value, and not the value itself."""
        return self.own_widths and (self.word_bytes > 8 or self.value_bytes not in (0, 4, 8))

    @property
    def word(self) -> str:
        """The type of a key in C++."""
        return f"warphash::u{8 * self.word_bytes}" if self.word_bytes <= 8 else f"warphash::Wide<{self.word_bytes}>"

    @property
    def value(self) -> str:
        """What the templates in C++ take of a value: its width if it has its own, otherwise whether there is one."""
        if self.value_is_row:
            return "warphash::kRow"
        return str(self.value_bytes) if self.own_widths else str(self.value_bytes > 0).lower()

    def entries(self, class_name: str) -> str:
        """The words in C++ that stand for all kernels of a design for these slots."""
        return f"WARPHASH_ENTRIES({class_name}, {self.word}, {self.value}, {self.slots_per_bucket})"


@dataclass(frozen=True)
class Reads:
    """What a find reads of a table.

    Attributes
    ----------
    bucket_bytes
        Of a bucket, what a probe reads.
    value_bytes
        Of a value that lies apart from its key; 0 if none does.
    in_a_row
        The next probe reads on behind the bucket, so that small buckets share what memory gives at once.
    words_share
        The share of the table's memory that the words of the overflow filters take (`HashMap.guest_counts`).
    """

    bucket_bytes: int
    value_bytes: int
    in_a_row: bool = False
    words_share: float = 0.0


class Layout(Protocol):
    """How the tables of a design lay their pairs out.

    Attributes
    ----------
    family
        The folder of ``kernels`` and of ``storage``.
    entries, cpu_entries
        The headers that define ``WARPHASH_ENTRIES`` for a GPU and for a CPU.
    partition
        The header of the kernels that bring a large batch in the order of the parts of a table.
    lookup_partition
        The header of the kernels that count the keys of each part for a lookup, copy the keys in that order, and bring
        the answers back; empty where lookups go as they come.
    cached_lookup_bytes
        Bytes of the widest pair that pays for the way to a part of a table in the cache and back, in a find; 0 if no
        pair does.
    refilling
        Entries of which a lane takes up one element after another (``kRefills``): no grid has a lane for each.
    companions
        For some entries, those that a table needs soon after it: a GPU loads them at the same time, and the compiler
        works on all of them side by side.
    own_widths
        A key and a value each have their own width in the table. Otherwise both have the wider of the two.
    in_place
        Keys and values of any width lie in the table itself, each in the width that it has. Otherwise a slot holds
        words of 4 or 8 bytes, and wider keys and values go to rows beside the table (`WideRows`).
    keys_apart
        Keys and values of a bucket lie apart whatever their widths, so an insert writes to two places.
    keeps_duplicates
        A key may have several pairs, as in a `MultiMap`.
    composed
        The tables are made of tables of other designs, so the family has no kernels of its own.
    """

    family: str
    entries: str
    cpu_entries: str
    partition: str
    lookup_partition: str
    cached_lookup_bytes: int
    refilling: frozenset[str]
    companions: Mapping[str, Sequence[str]]
    own_widths: bool
    in_place: bool
    keys_apart: bool
    keeps_duplicates: bool
    composed: bool

    def slot_bytes(self, key_bytes: int, value_bytes: int) -> int:
        """Bytes of a pair, those that align the next pair included."""
        ...

    def slots_per_bucket(self, parameters: Mapping[str, Any], key_bytes: int, value_bytes: int) -> int:
        """Slots that a bucket has in memory, those that hold no pair included."""
        ...

    def pairs_per_bucket(self, slots_per_bucket: int, slot_bytes: int) -> int:
        """Slots of a bucket that hold pairs."""
        ...

    def may_have_columns(self, slots_per_bucket: int, slot_bytes: int) -> bool:
        """Whether such a bucket is a column of keys and a column of values, if the design moves no key.

        A look at the keys then reads half of the bucket (``kernels/buckets/columns.cuh``).
        """
        ...

    def reads(self, slots_per_bucket: int, key_bytes: int, value_bytes: int) -> Reads:
        """What a find reads of a table without columns."""
        ...

    def slot_types(self, choices: tuple[int, ...]) -> Iterator[SlotTypes]:
        """Yield the slots that serve keys and values of all widths.

        ``choices`` are those of the parameter ``slots_per_bucket``.
        """
        ...


def _slot_of_words(key_bytes: int, value_bytes: int) -> int:
    """Bytes of a slot in which key and value both have the wider width of the two."""
    return max(key_bytes, value_bytes) * (2 if value_bytes else 1)


def _types_of_words(layout: Layout, choices: tuple[int, ...]) -> Iterator[SlotTypes]:
    for slots_per_bucket in choices or (1,):
        for word in (4, 8):
            for value in (0, word):
                given = {"slots_per_bucket": slots_per_bucket}
                yield SlotTypes(word, value, layout.slots_per_bucket(given, word, value))


def _types_in_place(layout: Layout) -> Iterator[SlotTypes]:
    for word in (4, 8, 16, 32, 64, 128):
        for value in (0, 4, 8, _ROW_BYTES) if word <= 8 else (_ROW_BYTES,):
            yield SlotTypes(word, value, layout.slots_per_bucket({}, word, value), own_widths=True)


class Buckets:
    """Buckets of as many slots as the parameter ``slots_per_bucket`` says, by default one, in one array."""

    family = "buckets"
    entries, cpu_entries = "buckets/gpu/entries.cuh", "buckets/cpu/entries.cuh"
    partition = "buckets/gpu/partition.cuh"
    lookup_partition, cached_lookup_bytes = "buckets/gpu/lookup_partition.cuh", 0
    refilling = frozenset[str]()
    companions: Mapping[str, Sequence[str]] = MappingProxyType(
        {
            "settle": ("claim", "place", "find"),
            "place": ("find",),
            "place_pairs": ("split", "find"),
            "update_block": ("find",),
        }
    )
    own_widths = in_place = keys_apart = keeps_duplicates = composed = False

    def slot_bytes(self, key_bytes: int, value_bytes: int) -> int:
        return _slot_of_words(key_bytes, value_bytes)

    def slots_per_bucket(self, parameters: Mapping[str, Any], key_bytes: int, value_bytes: int) -> int:
        return int(parameters.get("slots_per_bucket", 1))

    def pairs_per_bucket(self, slots_per_bucket: int, slot_bytes: int) -> int:
        return slots_per_bucket

    def may_have_columns(self, slots_per_bucket: int, slot_bytes: int) -> bool:
        return slot_bytes == 16 and slots_per_bucket >= 16

    def reads(self, slots_per_bucket: int, key_bytes: int, value_bytes: int) -> Reads:
        return Reads(slots_per_bucket * _slot_of_words(key_bytes, value_bytes), 0)

    def slot_types(self, choices: tuple[int, ...]) -> Iterator[SlotTypes]:
        return _types_of_words(self, choices)


BUCKETS = Buckets()


class Chains:
    """Buckets that are lists of nodes (``kernels/chains/slab_slots.cuh``). An insert is the one kernel ``place``.

    Parameters
    ----------
    node_slots
        Bytes of a slot to the slots of a node, those that hold no pair included.
    """

    family = "chains"
    entries = cpu_entries = "chains/entries.cuh"
    partition, lookup_partition, cached_lookup_bytes = Buckets.partition, "", 0
    refilling = frozenset(
        ["append", "append_reusing", "append_runs", "execute", "execute_pairs", "execute_reusing", "place", "relist"]
    )
    companions: Mapping[str, Sequence[str]] = MappingProxyType({"place": ("find",)})
    own_widths, in_place, keys_apart, keeps_duplicates = False, False, False, True
    composed = False

    def __init__(self, node_slots: Callable[[int], int]) -> None:
        self._node_slots = node_slots

    def slot_bytes(self, key_bytes: int, value_bytes: int) -> int:
        return _slot_of_words(key_bytes, value_bytes)

    def slots_per_bucket(self, parameters: Mapping[str, Any], key_bytes: int, value_bytes: int) -> int:
        return self._node_slots(_slot_of_words(key_bytes, value_bytes))

    def pairs_per_bucket(self, slots_per_bucket: int, slot_bytes: int) -> int:
        """Return the slots of a node but those of its pointer, which of a slab of 4-byte keys takes two words."""
        return slots_per_bucket - (2 if slot_bytes == 4 and slots_per_bucket > 2 else 1)

    def may_have_columns(self, slots_per_bucket: int, slot_bytes: int) -> bool:
        return False

    def reads(self, slots_per_bucket: int, key_bytes: int, value_bytes: int) -> Reads:
        return Reads(slots_per_bucket * _slot_of_words(key_bytes, value_bytes), 0)

    def slot_types(self, choices: tuple[int, ...]) -> Iterator[SlotTypes]:
        return _types_of_words(self, choices)


class Subtables:
    """Subtables of lines of keys, with the values behind them (``kernels/subtables/lines.cuh``).

    Parameters
    ----------
    line_bytes
        Bytes of keys in a bucket, whatever their width.
    entries
        As of `Layout`.
    """

    family = "subtables"
    cpu_entries = "subtables/cpu/entries.cuh"
    partition, lookup_partition = "subtables/gpu/partition.cuh", "subtables/gpu/lookup_partition.cuh"
    cached_lookup_bytes = 0
    refilling = frozenset(["claim", "place"])
    companions: Mapping[str, Sequence[str]] = MappingProxyType({"settle": ("claim", "place", "hand_over", "find")})
    own_widths, in_place, keys_apart, keeps_duplicates = True, True, True, False
    composed = False

    def __init__(self, line_bytes: int, entries: str = "subtables/entries.cuh") -> None:
        self.line_bytes, self.entries = line_bytes, entries

    def slot_bytes(self, key_bytes: int, value_bytes: int) -> int:
        return key_bytes + value_bytes

    def slots_per_bucket(self, parameters: Mapping[str, Any], key_bytes: int, value_bytes: int) -> int:
        return self.line_bytes // key_bytes

    def pairs_per_bucket(self, slots_per_bucket: int, slot_bytes: int) -> int:
        return slots_per_bucket

    def may_have_columns(self, slots_per_bucket: int, slot_bytes: int) -> bool:
        return False

    def reads(self, slots_per_bucket: int, key_bytes: int, value_bytes: int) -> Reads:
        bucket_bytes = slots_per_bucket * (key_bytes + value_bytes) + BUCKET_WORDS_BYTES
        return Reads(self.line_bytes, value_bytes, words_share=FILTER_WORDS_BYTES / bucket_bytes)

    def slot_types(self, choices: tuple[int, ...]) -> Iterator[SlotTypes]:
        return _types_in_place(self)


class Tickets:
    """Slots of one pair each, of any width, and a ticket for each (``kernels/tickets/ticket_board.cuh``).

    Parameters
    ----------
    entries, refilling
        As of `Layout`.
    claims
        Whether the entries have ``claim``.
    """

    family = "tickets"
    cpu_entries = "tickets/entries.cuh"
    partition, lookup_partition, cached_lookup_bytes = Buckets.partition, "", 0
    own_widths, in_place, keys_apart, keeps_duplicates = True, True, False, False
    composed = False

    def __init__(
        self, entries: str = cpu_entries, refilling: frozenset[str] = frozenset(), *, claims: bool = True
    ) -> None:
        self.entries, self.refilling = entries, refilling
        behind = ("claim", "place", "find") if claims else ("place", "find")
        self.companions: Mapping[str, Sequence[str]] = MappingProxyType({"settle": behind})

    def slot_bytes(self, key_bytes: int, value_bytes: int) -> int:
        first = 8 if key_bytes == 4 and value_bytes == 8 else key_bytes  # of the value
        alignment = 8 if first == 8 else min(16, key_bytes)
        return -(-(first + value_bytes) // alignment) * alignment

    def slots_per_bucket(self, parameters: Mapping[str, Any], key_bytes: int, value_bytes: int) -> int:
        return 1

    def pairs_per_bucket(self, slots_per_bucket: int, slot_bytes: int) -> int:
        return slots_per_bucket

    def may_have_columns(self, slots_per_bucket: int, slot_bytes: int) -> bool:
        return False

    def reads(self, slots_per_bucket: int, key_bytes: int, value_bytes: int) -> Reads:
        return Reads(self.slot_bytes(key_bytes, value_bytes), 0)

    def slot_types(self, choices: tuple[int, ...]) -> Iterator[SlotTypes]:
        return _types_in_place(self)


class Tiers:
    """Two tables of other designs: all pairs in one, and some of them in the other one, too (``storage/tiered``).

    What is said of slots and reads is that of a home in buckets.
    """

    family = "tiered"
    entries = cpu_entries = partition = lookup_partition = ""
    cached_lookup_bytes = 0
    refilling = frozenset[str]()
    companions: Mapping[str, Sequence[str]] = MappingProxyType({})
    own_widths = in_place = keys_apart = keeps_duplicates = False
    composed = True

    def slot_bytes(self, key_bytes: int, value_bytes: int) -> int:
        return BUCKETS.slot_bytes(key_bytes, value_bytes)

    def slots_per_bucket(self, parameters: Mapping[str, Any], key_bytes: int, value_bytes: int) -> int:
        return BUCKETS.slots_per_bucket(parameters, key_bytes, value_bytes)

    def pairs_per_bucket(self, slots_per_bucket: int, slot_bytes: int) -> int:
        return slots_per_bucket

    def may_have_columns(self, slots_per_bucket: int, slot_bytes: int) -> bool:
        return False

    def reads(self, slots_per_bucket: int, key_bytes: int, value_bytes: int) -> Reads:
        return BUCKETS.reads(slots_per_bucket, key_bytes, value_bytes)

    def slot_types(self, choices: tuple[int, ...]) -> Iterator[SlotTypes]:
        return iter(())


class TwoLevel:
    """Slots of one pair each, in a range for each bucket (``kernels/two_level/ranges.cuh``)."""

    family = "two_level"
    entries, cpu_entries = "two_level/gpu/entries.cuh", "two_level/cpu/entries.cuh"
    partition, lookup_partition, cached_lookup_bytes = Buckets.partition, "", 0
    refilling = frozenset[str]()
    companions: Mapping[str, Sequence[str]] = MappingProxyType(
        {"settle": ("claim", "link", "place", "find"), "scatter": ("place_all", "find")}
    )
    own_widths = in_place = keys_apart = keeps_duplicates = composed = False

    def slot_bytes(self, key_bytes: int, value_bytes: int) -> int:
        return _slot_of_words(key_bytes, value_bytes)

    def slots_per_bucket(self, parameters: Mapping[str, Any], key_bytes: int, value_bytes: int) -> int:
        """Return 1: a probe reads one slot, however many the range of a bucket has."""
        return 1

    def pairs_per_bucket(self, slots_per_bucket: int, slot_bytes: int) -> int:
        return slots_per_bucket

    def may_have_columns(self, slots_per_bucket: int, slot_bytes: int) -> bool:
        return False

    def reads(self, slots_per_bucket: int, key_bytes: int, value_bytes: int) -> Reads:
        return Reads(_slot_of_words(key_bytes, value_bytes), 0)

    def slot_types(self, choices: tuple[int, ...]) -> Iterator[SlotTypes]:
        return _types_of_words(self, ())


LINE_BYTES = 64
"""Of a bucket of a quotient table."""


_QUOTIENT_FORMS = {
    (4, 0): ((30, 1 << 18), (20, 1 << 10), (14, 1)),
    (4, 4): ((10, 1 << 18), (9, 1 << 10), (7, 1)),
    (4, 8): ((6, 1 << 18), (5, 1 << 10), (4, 1)),
    (8, 0): ((10, 1 << 18), (7, 1)),
    (8, 4): ((6, 1 << 18), (4, 1)),
    (8, 8): ((4, 1 << 18), (3, 1)),
}
"""Of keys and values of such widths: what `Quotients.forms` gives."""


class Quotients:
    """Lines of slots that keep the part of a hash which the bucket does not tell (``kernels/quotient/bucket.cuh``).

    The more buckets a table has, the fewer bits a slot keeps, and the more slots share a line. A table chooses by its
    size, so it is one of several specifications of kernels.
    """

    family = "quotient"
    entries, cpu_entries = "quotient/gpu/entries.cuh", "quotient/cpu/entries.cuh"
    partition, lookup_partition = "quotient/gpu/partition.cuh", "quotient/gpu/lookup_partition.cuh"
    cached_lookup_bytes = 8  # measured: docs/performance/find.md
    refilling = frozenset[str]()
    companions: Mapping[str, Sequence[str]] = MappingProxyType(
        {
            "count": ("reserve", "scatter", "build", "find"),
            "apply_in_place": ("apply",),
            "update_few": ("find",),
            "put_alone": ("put_stuck", "update_few"),
            "update_locked": ("update_few",),
            "erase_alone": ("renew_filters",),
        }
    )
    own_widths, in_place, keys_apart, keeps_duplicates, composed = True, False, False, False, False

    def forms(self, key_bytes: int, value_bytes: int) -> tuple[tuple[int, int], ...]:
        """Slots of a bucket, and the fewest buckets of a table that may have them; the most slots first."""
        return _QUOTIENT_FORMS[key_bytes, value_bytes]

    def puts_alone(self, key_bytes: int, value_bytes: int, slots_per_bucket: int) -> bool:
        """Whether one store fills a slot: it keeps 14 bits of a key (``kFieldIsOneStore``)."""
        return key_bytes == 4 and slots_per_bucket == self.forms(key_bytes, value_bytes)[0][0]

    def slot_bytes(self, key_bytes: int, value_bytes: int) -> int:
        """Bytes of a pair on its way to its range. In the table it takes others, with its share of the filter."""
        return _slot_of_words(key_bytes, value_bytes)

    def slots_per_bucket(self, parameters: Mapping[str, Any], key_bytes: int, value_bytes: int) -> int:
        """Return the slots of a bucket of the largest tables."""
        return self.forms(key_bytes, value_bytes)[0][0]

    def pairs_per_bucket(self, slots_per_bucket: int, slot_bytes: int) -> int:
        return slots_per_bucket

    def may_have_columns(self, slots_per_bucket: int, slot_bytes: int) -> bool:
        return False

    def reads(self, slots_per_bucket: int, key_bytes: int, value_bytes: int) -> Reads:
        return Reads(LINE_BYTES, 0)

    def slot_types(self, choices: tuple[int, ...]) -> Iterator[SlotTypes]:
        for word in (4, 8):
            for value in (0, 4, 8):
                for slots_per_bucket, _ in self.forms(word, value):
                    yield SlotTypes(word, value, slots_per_bucket, self.own_widths)
