"""What the options of a table came to is kept for tables with the same options, and for no others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warphash import HashMap, ParameterError
from warphash.table.facts import Facts, Widths, facts_of

PLAIN: dict[str, Any] = {
    "design": "auto",
    "load_factor": None,
    "load_bounds": None,
    "hash": "mixer",
    "on_full": "grow",
    "attempts": 8,
    "count_probes": False,
    "max_size": None,
    "evict": None,
    "score": None,
}


WORDS = Widths(4, 4, False, False)


def chosen(kind: str = "HashMap", device: str = "cpu", widths: Widths = WORDS, **changes: Any) -> Facts:
    which = kind, kind, kind == "MultiMap", device, widths
    return facts_of(*which, "raise", None, {}, None, *(PLAIN | changes).values())


def test_tables_with_the_same_options_share_what_these_come_to() -> None:
    assert chosen() is chosen()
    assert chosen(device="cuda:0").design.name == "quotient_cuckoo" and chosen().design.name == "bucketed_cuckoo"
    assert chosen(attempts=7).options["attempts"] == 7 and chosen().options["attempts"] == 8
    assert chosen(load_bounds=[0.1, 0.8]).load_bounds == (0.1, 0.8)  # a list has no hash


@pytest.mark.parametrize(
    ("kept", "refused"),
    [
        ({"attempts": 1}, {"attempts": True}),
        ({"attempts": 8}, {"attempts": 8.0}),
        ({"load_factor": 1.0}, {"load_factor": True}),
        ({"max_size": 1}, {"max_size": True}),
    ],
)
def test_an_option_that_equals_a_kept_one_is_checked_all_the_same(kept: dict[str, Any], refused: Any) -> None:
    chosen(**kept)
    with pytest.raises(ParameterError, match=next(iter(refused))):
        HashMap("u4", "u4", device="cpu", **refused)


@pytest.mark.parametrize("option", ["hash", "on_full", "attempts", "max_size", "evict"])
def test_an_option_without_a_hash_is_refused_as_any_other(option: str) -> None:
    given: dict[str, Any] = {"max_size": 10} if option == "evict" else {}
    with pytest.raises(ParameterError, match=option):
        HashMap("u4", "u4", device="cpu", **given | {option: [1]})


def test_a_bounded_table_and_a_multimap_are_other_kinds() -> None:
    assert chosen(max_size=5).bound is not None
    with pytest.raises(ParameterError, match="max_size"):
        chosen("MultiMap", max_size=5)


def test_tables_of_other_types_have_other_kernels() -> None:
    wide = chosen(widths=Widths(8, 8, False, False))
    assert wide.storage.stored.spec.key_bytes == 8 and chosen().storage.stored.spec.key_bytes == 4


def test_tables_of_one_kind_share_no_names_of_columns_and_no_seed() -> None:
    row = np.dtype(("u4", 2))
    first, second = HashMap(row, "u4", device="cpu"), HashMap(row, "u4", device="cpu")
    assert first._parts.facts is second._parts.facts and first.seed != second.seed
    assert first._parts.front.key.names is not second._parts.front.key.names
