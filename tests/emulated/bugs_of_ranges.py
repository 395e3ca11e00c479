"""Bugs planted in two-level tables."""

from __future__ import annotations

from typing import Any

from emulated.planted import Bug
from emulated.scenarios import Scenario, copies_of_new_keys, erased_and_inserted_again, evictions, sums_of_new_keys

__all__ = ["BUGS"]


def bug(name: str, right: str, wrong: str, scenario: Scenario, **parameters: Any) -> Bug:
    return Bug(name, right, wrong, scenario, "two_level_cuckoo", parameters={"range_slots": 64, **parameters})


BUGS = [
    bug(
        "a vacant first slot is taken before the other slots are looked at",
        "if (search.advance(t)) return false;",
        "if (!s.vacant && search.advance(t)) return false;",
        erased_and_inserted_again,
    ),
    bug(
        "a copy that came second does not look who was first",
        "return end(s, search.look() ? Outcome::kPresent : Outcome::kLeftover);",
        "return end(s, Outcome::kLeftover);",
        copies_of_new_keys,
    ),
    bug(
        "a bucket's list is entered in two steps",
        "exchange(reinterpret_cast<Link*>(Ranges<S>::counter(t, s.bucket)), Link{element}).element;",
        "load_relaxed(Ranges<S>::counter(t, s.bucket)); store_relaxed(Ranges<S>::counter(t, s.bucket), element);",
        copies_of_new_keys,
    ),
    bug(
        "a pair takes a slot in two steps",
        "const u32 other = exchange(m.slots + at, Number{pair}).pair;",
        "const u32 other = m.slots[at].pair; exchange(m.slots + at, Number{pair});",
        evictions,
    ),
    bug(
        "a displaced pair is forgotten",
        "m.hand[i] = displaced ? static_cast<u16>(other) : kNone;",
        "m.hand[i] = kNone; holds |= displaced && r > 2;",
        evictions,
    ),
    bug(
        "a block does not wait for the end of a round",
        "if (id == 0) m.left[(r + 1) % 3] = 0;\n      block_barrier();",
        "if (id == 0) m.left[(r + 1) % 3] = 0;",
        evictions,
    ),
    bug(
        "other seeds are tried for the new pairs alone",
        "first = 0;\n      vacate(range);",
        "vacate(range);",
        evictions,
        rounds=1,
    ),
    bug(
        "two erase one key of a range",
        "const bool erased = s.search.found && S::vacate(in_global(s.search.slot), s.search.seen);",
        "const bool erased = s.search.found; if (erased) S::vacate(in_global(s.search.slot), s.search.seen);",
        erased_and_inserted_again,
    ),
    bug(
        "the values of copies are not combined with that of the first",
        "if (s.outcome == Outcome::kPresent) combine_in<S>(b, s.search.slot, s.element);",
        "",
        sums_of_new_keys,
    ),
]
