"""When a table changes its size: statistics in, a number of slots out. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = [
    "capacity_of",
    "expected_nodes",
    "load_surely_placed",
    "may_halve",
    "most_keys",
    "most_tombstones",
    "moves_instead_of_packing",
    "nodes_for_batch",
    "nodes_to_add",
    "nodes_to_hold",
    "pool_nodes",
    "range_slots_for",
    "slots_after_failure",
    "slots_ahead",
    "slots_before_insert",
    "slots_between_enlargements",
    "slots_between_halvings",
    "slots_for",
    "slots_in_bounds",
    "subtable_shares",
    "subtable_sizes",
    "subtable_to_enlarge",
    "subtable_to_halve",
]


def slots_for(capacity: int, load_factor: float) -> int:
    """Slots that hold ``capacity`` keys at ``load_factor``."""
    return max(1, math.ceil(capacity / load_factor))


def capacity_of(slots: int, load_factor: float) -> int:
    """Most keys for which `slots_for` asks for no more than ``slots``."""
    keys = int(slots * load_factor)
    return keys + (slots_for(keys + 1, load_factor) <= slots)  # 90 * 0.7 is less than 63


def slots_before_insert(size: int, tombstones: int, slots: int, safe_load_factor: float) -> int | None:
    """Slots to rebuild into before an insert; None to leave the table as it is.

    A table that is full for its design doubles. One of which half the slots are tombstones is rebuilt at its size, as a
    bucket that was once full never again lets a find stop early.
    """
    if size >= safe_load_factor * slots:
        return 2 * slots
    if tombstones > slots // 2:
        return slots
    return None


def slots_after_failure(size: int, missing: int, slots: int, load_factor: float) -> int:
    """Slots to grow into after ``missing`` elements (duplicates included) found no room beside ``size`` keys.

    At least double, so that growing is amortised; at most what all of them need.
    """
    return max(2 * slots, min(8 * slots, slots_for(size + missing, load_factor)))


def easy_keys(slots: int, safe_load_factor: float) -> int:
    """Keys with which every design stays fast: a tenth less than those that it surely finds slots for."""
    return int(0.9 * safe_load_factor * slots)


def most_keys(slots: int, load_factor: float, safe_load_factor: float, bounds: tuple[float, float] | None) -> int:
    """Keys that a table is filled with before it grows for a batch that would bring more.

    The capacity that was asked for, and more where the design stays fast with more. With bounds, the table grows behind
    the batch that exceeds them, so only a batch for which there are no slots makes it grow ahead.
    """
    if bounds is not None:
        return slots
    return max(capacity_of(slots, load_factor), easy_keys(slots, safe_load_factor))


def slots_ahead(keys: int, slots: int, load_factor: float, bounds: tuple[float, float] | None) -> int:
    """Slots to grow into before a batch after which the table has about ``keys`` keys; at least double.

    The number of keys is an estimate (`estimate`), and three standard errors are added.
    """
    keys = math.ceil(1.035 * keys)
    if bounds is not None:
        return slots_in_bounds(keys, slots, (0, bounds[1])) or 2 * slots
    return max(2 * slots, slots_for(keys, load_factor))


FEWEST_SLOTS = 64
"""Below which a table is not halved: it would save nothing."""


def slots_in_bounds(size: int, slots: int, bounds: tuple[float, float]) -> int | None:
    """Slots to rebuild into after a batch, so that the load factor is in ``bounds``; None to leave the table as it is.

    Everything is doubled or halved, as often as it takes: the policy of the baselines in Dynamic Hash Tables on GPUs,
    section 6.1.
    """
    least, most = bounds
    wanted = slots
    while size > most * wanted:
        wanted *= 2
    while wanted > FEWEST_SLOTS and size < least * wanted:
        wanted = -(-wanted // 2)
    return None if wanted == slots else wanted


_HALVINGS = 6
"""Digits, of two, of the size of a subtable: so often, and more, a large one can be halved before it is odd."""


def subtable_sizes(buckets: int, subtables: int) -> list[int]:
    """Buckets of each of equal subtables with at least ``buckets`` between them, rounded up by at most 1.6 percent."""
    each = -(-buckets // subtables)
    unit = 1 << max(0, each.bit_length() - 1 - _HALVINGS)
    return [-(-each // unit) * unit] * subtables


def subtable_to_enlarge(sizes: Sequence[int]) -> int:
    """The smallest: so none is ever more than twice as large as another (Dynamic Hash Tables on GPUs, section 5.1)."""
    return sizes.index(min(sizes))


def subtable_to_halve(sizes: Sequence[int]) -> int | None:
    """The largest; None if it cannot be halved."""
    largest = max(sizes)
    return sizes.index(largest) if largest % 2 == 0 else None


def slots_between_enlargements(keys: int, subtables: int, most: float) -> int:
    """Slots for ``keys`` keys, at the middle of the load factors that a table has while it grows.

    Of equal subtables, enlarging one brings the load factor from ``most`` to ``most * subtables / (subtables + 1)``.
    """
    return math.ceil(keys / (most * (1 - 0.5 / (subtables + 1))))


def slots_between_halvings(keys: int, subtables: int, least: float) -> int:
    """Slots for ``keys`` keys, at the middle of the load factors that a table has while it shrinks.

    Of equal subtables, halving one brings the load factor from ``least`` to
    ``least * 2 * subtables / (2 * subtables - 1)``.
    """
    return math.ceil(keys / (least * (1 + 0.5 / (2 * subtables - 1))))


def may_halve(size: int, slots: int, failed: tuple[int, int]) -> bool:
    """Whether ``size`` keys may be tried in the ``slots`` that a halving would leave.

    Keys that evictions found no slot for make the table larger again, which costs as much as the halving. So the
    halving is not repeated before a sixteenth of the keys are gone, to which its cost then amounts.

    Parameters
    ----------
    failed
        The slots and keys of the last table in which some keys found no slot.
    """
    return slots > failed[0] or size <= failed[1] * 15 // 16


def load_surely_placed(slots_per_bucket: int, subtables: int) -> float:
    """Load factor up to which all keys can be placed, except by a freak of the hash constants.

    It depends on the slots that a key can be in. Of two, three keys that share both are enough to fail, and in most
    tables some do. Of three or four, nearly all tables of 0.89 can be filled (Dietzfelbinger et al., Tight Thresholds
    for Cuckoo Hashing via XORSAT, 2010; Fernholz and Ramachandran, The k-orientability Thresholds for G(n, p), 2007),
    and beyond that of 0.97.
    """
    choices = slots_per_bucket * subtables
    return 0.0 if choices == 2 else 0.75 if choices <= 4 else 1.0


def subtable_shares(routing: str, sizes: Sequence[int], counts: Sequence[int]) -> list[float]:
    """Share of the keys that goes to each subtable first; they sum to 1.

    A table whose keys go elsewhere after a resize has lookups that also read where the keys went before. So the shares
    that make conflicts fewest are not those by which lookups read the fewest lines (docs/fidelity.md#dyhash-shares).

    Parameters
    ----------
    routing
        ``"even"``: the same share for each subtable, so no share ever moves. ``"equal_loads"``: in proportion to n, so
        all subtables come to the same load factor, where conflicts are fewest. ``"theorem"``: in proportion to
        n / C(m, 2), as Dynamic Hash Tables on GPUs, section 5.2, draws subtables.
    sizes, counts
        Buckets n and keys m of each subtable.
    """
    match routing:
        case "even":
            weights = [1.0] * len(sizes)
        case "equal_loads":
            weights = [float(n) for n in sizes]
        case _:
            weights = [n / max(1, math.comb(m, 2)) for n, m in zip(sizes, counts, strict=True)]
    total = sum(weights)
    return [weight / total for weight in weights]


def expected_nodes(keys: int, buckets: int, pairs_per_node: int) -> float:
    """Mean number of nodes, slabs for one, of ``buckets`` lists that hold ``keys`` keys, a first node each.

    Exact for keys that are spread evenly at random: the lengths are of a Poisson distribution (A Dynamic Hash Table for
    the GPU, section III-C).
    """
    mean = keys / buckets
    if mean > 1000:  # the last node of a list is as likely filled to one slot as to another
        return buckets * (mean / pairs_per_node + (pairs_per_node - 1) / (2 * pairs_per_node))
    most = int(mean + 12 * math.sqrt(mean) + 12)
    log_mean = math.log(mean) if keys else 0.0
    weights = (math.exp(c * log_mean - mean - math.lgamma(c + 1)) if keys else float(c == 0) for c in range(most))
    return buckets * sum(weight * max(1, -(-c // pairs_per_node)) for c, weight in enumerate(weights))


def most_tombstones(size: int) -> int:
    """Erased slots, which finds still read, that a table of lists keeps: as many as it has keys."""
    return max(size, 1024)


def moves_instead_of_packing(size: int, lists: int, nodes: int, capacity: int) -> bool:
    """Whether moving ``size`` pairs to new lists touches fewer lines of memory than packing the lists in place.

    Both ways read every node. Packing writes the first node of each list; of each further node it wipes a line and
    changes a bitmap. New lists are filled line by line in order, which a GPU does four times as fast as it reaches
    lines in no order; then each pair reads a line and writes it.

    Parameters
    ----------
    nodes, capacity
        Nodes of the pool in use; and all that a pool for the new lists has.
    """
    return 2 * size + (lists + capacity) / 4 < lists + 2 * nodes


def nodes_for_batch(n: int, pairs_per_node: int) -> int:
    """Most nodes that ``n`` elements take while they are placed, those included that they give back.

    Of c elements at one list, each link fills a node, so no more than ceil(c / pairs) do; and each but the one that
    linked last may have come too late with a node of its own, which it keeps until it is done.
    """
    return n + n // pairs_per_node


def nodes_to_add(capacity: int, pairs: int, pairs_per_node: int, spares: int) -> int:
    """Nodes to add to a pool of ``capacity`` nodes that was exhausted; at least as many again.

    Every node of a list but the last one is full. So ``pairs`` pairs, erased ones included, need no more nodes beside
    the first ones than ceil(pairs / pairs per node), however the pairs are spread. A sixteenth is added, as in
    `pool_nodes`.

    Parameters
    ----------
    spares
        Nodes that elements may hold besides while they are placed.
    """
    most = -(-pairs // pairs_per_node)
    return max(capacity, most + most // 16 + spares - capacity)


def nodes_to_hold(n: int, lists: int) -> int:
    """Free nodes to have ready for batches of ``n`` elements that nobody waits for; 0 for none.

    A batch that finds `nodes_for_batch` cannot fail, and keeps no more than it has elements. They are held for four
    batches, since finding out how many are free takes time too, and for sixteen while that is no more than there are
    lists, or 64 MiB of slabs; but for none if four are more than that and than twice the lists.
    """
    little = 1 << 19
    return max(4 * n, min(16 * n, max(lists, little))) if 4 * n <= max(2 * lists, little) else 0


def pool_nodes(keys: int, buckets: int, pairs_per_node: int) -> int:
    """Nodes beside the first ones to hold ready for ``keys`` keys.

    A sixteenth more than expected: looking for one in a pool that is nearly exhausted takes long.
    """
    beyond = expected_nodes(keys, buckets, pairs_per_node) - buckets
    return math.ceil(beyond * 1.0625 + 4 * math.sqrt(max(beyond, 0.0)))


_FEWEST_RANGE_SLOTS = 8
"""For each function of a bucket, so that a small table has a layout under most seeds."""


def range_slots_for(slots: int, range_slots: int, hashes: int) -> tuple[int, int]:
    """Buckets of a two-level table with at least ``slots`` slots between them, and the slots of each.

    Parameters
    ----------
    range_slots
        Most slots of a bucket. They are a few less where that makes the buckets equal.
    hashes
        Subtables of a bucket: its slots are a multiple of these, and of 4, so that ranges begin at whole sectors.
    """
    unit = math.lcm(hashes, 4)
    most = range_slots // unit * unit
    buckets = max(1, -(-slots // most))
    each = -(-slots // buckets)
    return buckets, max(_FEWEST_RANGE_SLOTS * hashes, -(-each // unit) * unit)
