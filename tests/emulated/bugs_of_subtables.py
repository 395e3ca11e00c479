"""Bugs planted in tables of several subtables."""

from __future__ import annotations

from emulated.planted import Bug
from emulated.scenarios import (
    Scenario,
    batches_that_grow,
    copies_of_new_keys,
    erased_and_inserted_again,
    evictions_from_lines_of_one_key,
    subtables_that_grow_and_shrink,
)

__all__ = ["BUGS"]


def bug(name: str, right: str, wrong: str, scenario: Scenario, **parameters: str) -> Bug:
    """A bug of this design."""
    return Bug(name, right, wrong, scenario, "dynamic_cuckoo", parameters=parameters)


TAKES_LOCK = "        if (!any(leads && try_lock(lock))) continue;  // 3\n"
LOOKS = "        const BucketView<S> seen = look_together<S>(S::at(t, bucket), key, region);\n"
BETWEEN = """        const Word key = shuffle(pending ? state.key() : Word{}, leader, 32);
        warp_barrier();  // 4
"""


BUGS = [
    bug(
        "a bucket is unlocked before the pair is stored",
        "    if (full) {\n      evict(t, p);",
        "    unlock(lock);\n    if (full) {\n      evict(t, p);",
        evictions_from_lines_of_one_key,
    ),
    bug(
        "a slot is not looked at again under the lock",
        "} else if (kHasLock || is_vacant(t, p.bucket, seen.vacant)) {",
        "} else {",
        evictions_from_lines_of_one_key,
    ),
    bug(
        "a slot that a wide key saw vacant is not looked at again under the lock",
        "if (vacant == S::kSlots && is_mark(found, 1)) vacant = j;",
        "if (vacant == S::kSlots && (b.unique || is_mark(found, 1))) vacant = j;",
        evictions_from_lines_of_one_key,
    ),
    bug(
        "a lock is taken by two",
        "return compare_exchange_acquire(lock, 0u, 1u) == 0;",
        "return load_relaxed(lock) == 0 && (store_relaxed(lock, 1u), true);",
        evictions_from_lines_of_one_key,
    ),
    bug(
        "a key of a word is put in two steps",
        "const Word old = compare_exchange_word(slot, expected, key);",
        "const Word old = load_relaxed(slot); if (old == expected) store_relaxed(slot, key);",
        copies_of_new_keys,
    ),
    bug(
        "a key that is put outside its first subtable is not entered into the overflow filter",
        "if (s.overflows) OverflowFilter::of<S>(t, subtable_of(s.goes_to), key).add();",
        "",
        batches_that_grow,
    ),
    bug(
        "a victim is not entered into the overflow filter where it goes",
        "if (!p.reserved) receive<S>(t, p.bucket, digest(t, p.key));",
        "",
        evictions_from_lines_of_one_key,
    ),
    bug(
        "a find forgets where keys went first before a resize moved the shares",
        "draw >= t.least_begins[j] && draw < t.most_ends[j]",
        "route.subtable == j",
        batches_that_grow,
        routing="equal_loads",
    ),
    bug(
        "the overflow filter of a subtable that grows is forgotten",
        "receive<S>(t, halves + goes_to, digest(t, key));",
        "",
        batches_that_grow,
    ),
    bug(
        "the overflow filter of a subtable that is halved is forgotten",
        "S::at(t, to)[to_slot].key = key;\n      receive<S>(t, to, digest(t, key));",
        "S::at(t, to)[to_slot].key = key;",
        subtables_that_grow_and_shrink,
    ),
    bug(
        "a copy that was faster is passed by",
        "s.probe.bucket = s.goes_to;\n    return s.outcome != Outcome::kOpen;",
        "if (s.outcome == Outcome::kOpen) return s.walked = false, s.goes_to = kNowhere, !s.probe.advance(t, seen);\n"
        "    return true;",
        copies_of_new_keys,
    ),
    bug(
        "a key of a word is erased in two steps",
        "s.found = compare_exchange_word(slot, s.probe.named.key, S::kTombstone) == s.probe.named.key;",
        "s.found = load_relaxed(slot) == s.probe.named.key; store_relaxed(slot, S::kTombstone);",
        erased_and_inserted_again,
    ),
    bug(
        "a warp goes on without the lock of its leader",
        TAKES_LOCK,
        "        any(leads && try_lock(lock));\n",
        copies_of_new_keys,
        coordination="voter",
    ),
    bug(
        "an empty slot is taken before the key behind it",
        "if (hits) seen.hit",
        "if (hits && !(vacant & ((1u << first_bit(hits)) - 1))) seen.hit",
        batches_that_grow,
        coordination="voter",
    ),
    bug(
        "a warp looks for a key only in the first bucket with room",
        "if (!s.walked && s.probe.advance(t, seen, s.goes_to == kNowhere)) return false;",
        "if (!s.walked && s.goes_to == kNowhere && s.probe.advance(t, seen, true)) return false;",
        batches_that_grow,
        coordination="voter",
    ),
    bug(
        "a warp does not enter a key into the overflow filter",
        "if (s.overflows) OverflowFilter::of<S>(t, subtable_of(s.goes_to), digest(t, key)).add();",
        "",
        batches_that_grow,
        coordination="voter",
    ),
    bug(
        "a warp reads a bucket before it has the lock",
        TAKES_LOCK + BETWEEN + LOOKS,
        BETWEEN + LOOKS + TAKES_LOCK,
        copies_of_new_keys,
        coordination="spin",
    ),
    bug(
        "a warp unlocks a bucket before the pair is stored",
        "        pending = !Task::step(t, b, state, seen);\n        unlock(lock);  // 6\n",
        "        unlock(lock);  // 6\n        pending = !Task::step(t, b, state, seen);\n",
        copies_of_new_keys,
        coordination="spin",
    ),
]
