"""The designs again, from the paper's text: one key after another, plain Python, no code shared with the package.

Source: Better GPU Hash Tables (Awad et al., 2021), section III, with its errata: what iceberg's threshold counts
and which secondary wins a tie are arguments, so that a test can tell the readings apart
(docs/fidelity.md#bght-erratum-threshold).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Choices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Outcome:
    """Mean buckets read, and how full each bucket became."""

    insert: float
    present: float
    absent: float
    loads: npt.NDArray[np.int64]
    unplaced: int


def choices(n: int, buckets: int, functions: int, rng: np.random.Generator) -> Choices:
    """Perfectly random hash functions: the buckets of ``n`` keys, (n, functions)."""
    return rng.integers(0, buckets, size=(n, functions))


def iceberg(
    buckets: int,
    b: int,
    n: int,
    region: int,
    last_wins_ties: bool,
    rng: np.random.Generator,
    early_exit: bool = False,
    hashes: int = 3,
    parts: int = 1,
) -> Outcome:
    """Primary bucket while it holds fewer than ``region`` keys, else the emptiest secondary, else the primary again.

    The keys come in random order, or part of the table by part, as a large batch does on a GPU.
    """
    chosen = choices(n, buckets, hashes, rng)
    chosen = chosen[np.argsort(chosen[:, 0] * parts // buckets, kind="stable")]
    load = [0] * buckets
    function = np.zeros(n, np.int64)
    read = unplaced = 0
    for key, (primary, *secondaries) in enumerate(chosen.tolist()):
        if load[primary] < region:
            read += 1
            load[primary] += 1
            continue
        read += hashes
        least = min(load[bucket] for bucket in secondaries)
        ties = [number for number, bucket in enumerate(secondaries, 1) if load[bucket] == least]
        taken = ties[-1 if last_wins_ties else 0]
        bucket = secondaries[taken - 1]
        if load[bucket] == b:
            taken, bucket = 0, primary
        if load[bucket] == b:
            unplaced += 1
            function[key] = hashes - 1
            continue
        load[bucket] += 1
        function[key] = taken
    loads = np.array(load)
    absent = choices(n, buckets, hashes, rng)
    open_primary = loads[absent[:, 0]] < region
    absent_mean = float(np.where(open_primary & early_exit, 1, hashes).mean())
    return Outcome(read / n, first_position(chosen, function), absent_mean, loads, unplaced)


def power_of_two(
    buckets: int, b: int, n: int, rng: np.random.Generator, last_wins_ties: bool = False, hashes: int = 2
) -> Outcome:
    """The emptiest of the key's buckets; the paper's first wins ties (section V-C)."""
    chosen = choices(n, buckets, hashes, rng)
    load = [0] * buckets
    function = np.zeros(n, np.int64)
    unplaced = 0
    for key, places in enumerate(chosen.tolist()):
        loads = [load[place] for place in places]
        least = min(loads)
        taken = hashes - 1 - loads[::-1].index(least) if last_wins_ties else loads.index(least)
        if least == b:
            unplaced += 1
            continue
        load[places[taken]] += 1
        function[key] = taken
    return Outcome(float(hashes), first_position(chosen, function), float(hashes), np.array(load), unplaced)


def bucketed_cuckoo(buckets: int, b: int, hashes: int, n: int, chain_limit: int, rng: np.random.Generator) -> Outcome:
    """First bucket; full: exchange with a random key of it, which goes on to the function after the one it has here."""
    chosen = choices(n, buckets, hashes, rng)
    where = chosen.tolist()
    table: list[list[int]] = [[] for _ in range(buckets)]
    victims = rng.integers(0, b, size=1 << 16).tolist()
    read = unplaced = turn = 0
    for key in range(n):
        hand, bucket = key, where[key][0]
        for _ in range(chain_limit + 1):
            read += 1
            if len(table[bucket]) < b:
                table[bucket].append(hand)
                break
            turn = (turn + 1) & 0xFFFF
            hand, table[bucket][victims[turn]] = table[bucket][victims[turn]], hand
            bucket = where[hand][(where[hand].index(bucket) + 1) % hashes]
        else:
            unplaced += 1
    loads = np.array([len(keys) for keys in table])
    positions = [where[key].index(bucket) + 1 for bucket, keys in enumerate(table) for key in keys]
    absent = loads[choices(n, buckets, hashes, rng)] < b
    stops = np.where(absent.any(axis=1), absent.argmax(axis=1) + 1, hashes)
    return Outcome(read / n, float(np.mean(positions)), float(stops.mean()), loads, unplaced)


def bucketed_cuckoo_at_once(
    buckets: int, b: int, hashes: int, n: int, chain_limit: int, at_once: int, rng: np.random.Generator
) -> tuple[float, int]:
    """Mean buckets read by an insert, and pairs left without a slot, if ``at_once`` keys are under way at a time.

    In a round, each key under way reads its bucket and either takes a slot or goes on with a victim. Of several keys
    that want one slot, one gets it, and the others read again. A key that has a slot, or gives up, is followed by the
    next of the batch.
    """
    chosen = rng.integers(0, buckets, size=(n, hashes), dtype=np.int32)
    table, load = np.empty((buckets, b), np.int32), np.zeros(buckets, np.int32)
    hand, bucket, evictions = (np.empty(0, np.int32) for _ in range(3))
    started = read = unplaced = 0
    while started < n or len(hand):
        new = np.arange(started, min(n, started + at_once - len(hand)), dtype=np.int32)
        started += len(new)
        hand, bucket = np.concatenate([hand, new]), np.concatenate([bucket, chosen[new, 0]])
        evictions = np.concatenate([evictions, np.zeros_like(new)])
        read += len(hand)
        full = load[bucket] == b
        gives_up = full & (evictions >= chain_limit)
        unplaced += int(gives_up.sum())

        _, first = np.unique(bucket[~full], return_index=True)
        takes = np.flatnonzero(~full)[first]
        evicts = np.flatnonzero(full & ~gives_up)
        victims = rng.integers(0, b, size=len(evicts), dtype=np.int32)
        _, first = np.unique(bucket[evicts].astype(np.int64) * b + victims, return_index=True)
        evicts, victims = evicts[first], victims[first]

        table[bucket[takes], load[bucket[takes]]] = hand[takes]
        load[bucket[takes]] += 1
        victim = table[bucket[evicts], victims]
        table[bucket[evicts], victims] = hand[evicts]
        function = (chosen[victim] == bucket[evicts, None]).argmax(axis=1)
        hand[evicts] = victim
        bucket[evicts] = chosen[victim, (function + 1) % hashes]
        evictions[evicts] += 1

        stays = ~gives_up
        stays[takes] = False
        hand, bucket, evictions = hand[stays], bucket[stays], evictions[stays]
    return read / n, unplaced


def first_position(chosen: Choices, function: npt.NDArray[np.int64]) -> float:
    """Mean buckets that a find reads before the key: up to the first function that names its bucket."""
    bucket = chosen[np.arange(len(chosen)), function]
    return float((chosen == bucket[:, None]).argmax(axis=1).mean()) + 1.0
