"""Bugs planted in the ticket board and what uses it."""

from __future__ import annotations

from typing import Any

from emulated.planted import Bug
from emulated.scenarios import Scenario, copies_of_new_keys, erased_and_inserted_again, evictions

__all__ = ["BUGS"]


def bug(name: str, right: str, wrong: str, scenario: Scenario, **parameters: Any) -> Bug:
    return Bug(name, right, wrong, scenario, "stadium", parameters=parameters)


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
        erased_and_inserted_again,
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
]
