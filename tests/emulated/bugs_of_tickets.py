"""Bugs planted in the ticket board and what uses it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from emulated.planted import Bug
from emulated.scenarios import (
    Scenario,
    all_erased_at_once,
    batches_of_many_rows,
    copies_of_new_keys,
    erased_and_inserted_again,
    evictions,
    mixed_batches,
    values_under_shared_locks,
)

__all__ = ["BUGS"]


def bug(name: str, right: str, wrong: str, scenario: Scenario, **parameters: Any) -> Bug:
    return Bug(name, right, wrong, scenario, "stadium", parameters={"lanes": "stash", **parameters})


def bug_of_rows(name: str, right: str, wrong: str, scenario: Scenario, **parameters: Any) -> Bug:
    return replace(bug(name, right, wrong, scenario, **parameters), word="rows", value="rows")


BUGS = [
    bug(
        "a ticket is booked in two steps",
        "return fetch_and(word, ~permit()) & permit();",
        "const u32 seen = load_relaxed(word); fetch_and(word, ~permit()); return seen & permit();",
        evictions,
    ),
    bug(
        "a booking overwrites the tickets beside it",
        "return fetch_and(word, ~permit()) & permit();",
        "const u32 seen = load_relaxed(word); if (seen & permit()) store_relaxed(word, seen & ~permit());"
        " return seen & permit();",
        evictions,
        ticket_bits=1,
    ),
    bug(
        "info bits overwrite the tickets beside them",
        "if (mask) fetch_and(word, ~((~info & mask) << 1 << position));",
        "if (mask) store_relaxed(word, load_relaxed(word) & ~((~info & mask) << 1 << position));",
        evictions,
        ticket_bits=2,
    ),
    bug(
        "two erase one key of a ticket",
        "erased = Ticket::of(t, slot).give_back(t);",
        "Ticket::of(t, slot).give_back(t); erased = true;",
        erased_and_inserted_again,
    ),
    bug(
        "a ticket is given back before its slot is marked as emptied",
        "if (t.emptied) EmptiedBit::of(t, slot).set();\n      erased = Ticket::of(t, slot).give_back(t);",
        "erased = Ticket::of(t, slot).give_back(t);\n      if (t.emptied) EmptiedBit::of(t, slot).set();",
        all_erased_at_once,
        ticket_bits=1,
    ),
    bug(
        "the mark of an emptied slot overwrites those beside it",
        "WARPHASH_FN void set() const { fetch_or(word, bit); }",
        "WARPHASH_FN void set() const { store_relaxed(word, load_relaxed(word) | bit); }",
        erased_and_inserted_again,
        ticket_bits=4,
    ),
    bug(
        "copies of a new key are placed by each element",
        "s.won = owner == kNowhere;\n      if (s.won || key_at<S>(b, owner) == key) return false;",
        "s.won = true;\n      return false;",
        copies_of_new_keys,
    ),
    bug(
        "a mixed batch books a slot that was emptied since it looked",
        "if (!was_never_used<false>(t, s.walk.slot)) {  // it was booked and emptied since it was seen",
        "if (false) {",
        mixed_batches,
    ),
    bug(
        "a pair is shown before it is written",
        "*reinterpret_cast<Word*>(pair) = s.key;\n",
        "AccessBit::of(t, s.walk.slot).set();\n    emulation::switch_point();\n"
        "    *reinterpret_cast<Word*>(pair) = s.key;\n",
        mixed_batches,
    ),
    bug_of_rows(
        "a wide pair is shown before its value is written",
        "      write_row(S::value_of(pair), row_of(s), t.value_bytes);\n    AccessBit::of(t, s.walk.slot).set();",
        "      AccessBit::of(t, s.walk.slot).set();\n    write_row(S::value_of(pair), row_of(s), t.value_bytes);",
        mixed_batches,
    ),
    bug_of_rows(
        "a find does not look at the version again",
        "return load() == before;",
        "return true;",
        mixed_batches,
    ),
    bug_of_rows(
        "a find reads a value that is being written",
        "if (is_under_way(before) && is_of_slot(before)) return false;",
        "",
        mixed_batches,
    ),
    bug_of_rows(
        "two assigns write one value at once",
        "if (met != before) return is_of_slot(met);",
        "",
        mixed_batches,
    ),
    bug_of_rows(
        "an assign yields to one of another slot",
        "if (is_under_way(before)) return is_of_slot(before);",
        "if (is_under_way(before)) return true;",
        values_under_shared_locks,
    ),
    bug_of_rows(
        "an assign that lost the lock to another slot is dropped",
        "if (met != before) return is_of_slot(met);",
        "if (met != before) return true;",
        values_under_shared_locks,
    ),
    bug_of_rows(
        "a write ends without a new version",
        "store_release(word, mine + kUnderWay);",
        "store_release(word, mine - kUnderWay);",
        mixed_batches,
    ),
    bug(
        "an insert passes by a pair that is on its way",
        "if (!access.is_set()) return !s.writes() && !t.waits && go_on(t, s);",
        "if (!access.is_set()) return go_on(t, s);",
        mixed_batches,
    ),
    bug(
        "a mixed batch books a ticket without its info bits",
        "if (!place.book_with(t, s.info)) return false;",
        "if (!place.book()) return false;\n    place.inform(t, s.info);",
        mixed_batches,
    ),
    bug(
        "two of a mixed batch erase one key",
        "} else if (s.operation == kEraseKey && access.clear()) {",
        "} else if (s.operation == kEraseKey) {\n      access.clear();",
        mixed_batches,
    ),
    bug(
        "a warp puts more jobs into its pool than there is room for",
        "if (next < end && bit_count(in_hand) + pooled <= kWarpLanes) {",
        "if (next < end) {",
        batches_of_many_rows,
        lanes="clstash",
    ),
    bug(
        "the warps of a block have one pool",
        "thread_in_block() / kWarpLanes * kWarpLanes;\n    u32 pooled = 0;",
        "0;\n    u32 pooled = 0;",
        batches_of_many_rows,
        lanes="clstash",
    ),
    bug(
        "two lanes take one job from the pool",
        "job = pool[pooled - 1 - rank];",
        "job = pool[pooled - 1 - rank / 2];",
        batches_of_many_rows,
        lanes="clstash",
    ),
    bug(
        "what is left in a pool is forgotten",
        "} else if (in_hand || pooled) {",
        "} else if (in_hand) {",
        batches_of_many_rows,
        lanes="clstash",
    ),
    bug(
        "a lane without a job answers its last one again",
        "const bool finished = live && !busy;",
        "const bool finished = !busy;",
        batches_of_many_rows,
        lanes="clstash",
    ),
    bug(
        "a job goes on in the pool without its state",
        "if (busy) pool[pooled + rank] = job;",
        "if (busy) pool[pooled + rank].i = job.i;",
        batches_of_many_rows,
        lanes="clstash",
    ),
]
