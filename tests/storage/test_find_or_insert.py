"""Inserts, and `find_or_insert`, of keys that are known, new, or both: which walk comes first changes no answer."""

from __future__ import annotations

import numpy as np
import pytest

import warphash.storage.find_or_insert as module
from support.cases import design_names
from support.faults import Scenario, all_faults, check_harmless, scenarios
from support.refusals import refusing
from support.types import Array
from warphash import HashMap, HashSet, TableFull
from warphash.runtime.devices import engine_for
from warphash.storage import word_rows

SHARES = (0, 0.01, 0.2, 0.5, 0.95, 1)
"""Of a batch, the new keys."""


@pytest.fixture
def any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of any length are sampled, and are inserted or found in part."""
    for name in ("FEWEST_SAMPLED", "_FEWEST_PARTED", "_FEWEST_PARTED_INSERT", "_RUN"):
        monkeypatch.setattr(module, name, 1)
    monkeypatch.setattr(module, "_SAMPLED", 4)
    monkeypatch.setattr(word_rows, "FEWEST_SAMPLED", 1)


def batch(rng: np.random.Generator, known: Array, share: float, n: int, *, repeated: bool) -> Array:
    """Keys of which some are known, and the others are not."""
    new = max(known) + 1 + np.arange(round(share * n))
    if repeated:
        new //= 2
    return rng.permutation(np.concatenate([rng.choice(known, n - len(new)), new]))


def agree(table: HashMap, held: dict[int, int], keys: Array, values: Array) -> None:
    """Find or insert, and compare with a dict: a new key has the value of the element that says so."""
    answer, inserted = table.find_or_insert(keys.astype(table.key_dtype), values.astype(table.value_dtype))
    adding = keys[inserted].tolist()
    assert len(adding) == len(set(adding)) and set(adding) == set(keys.tolist()) - held.keys()
    held.update(zip(adding, values[inserted].tolist(), strict=True))
    assert answer.tolist() == [held[key] for key in keys.tolist()]


@pytest.mark.parametrize("repeated", [False, True], ids=["different", "repeated"])
@pytest.mark.parametrize(("key", "value"), [("i8", "i8"), ("u4", "u4"), ("i8", "i4"), ("u4", "i2")])
@pytest.mark.parametrize("design", design_names())
def test_shares_of_new_keys(design: str, key: str, value: str, repeated: bool, rng: np.random.Generator) -> None:
    for n in (5000, 20_000):
        table, held = HashMap(key, value, capacity=n, design=design, device="cpu"), dict[int, int]()
        agree(table, held, np.arange(n), rng.integers(0, 30_000, n))
        for share in SHARES:
            keys = batch(rng, np.array(list(held)), share, n, repeated=repeated)
            agree(table, held, keys, rng.integers(0, 30_000, n))
        table.check()


@pytest.mark.usefixtures("any_length")
@pytest.mark.parametrize("sample", ["known", "new"])
@pytest.mark.parametrize("design", ["bucketed_cuckoo", "dynamic_cuckoo", "stadium"])
def test_a_sample_that_misleads(design: str, sample: str, rng: np.random.Generator) -> None:
    """All keys at the places of the sample are known, or new, and most of the others are not."""
    for n in (40, 400):
        held: dict[int, int] = {}
        table = HashMap("i8", "i8", capacity=n, design=design, device="cpu")
        agree(table, held, np.arange(n), np.arange(n))
        keys = np.arange(n) + (n if sample == "known" else 0)
        keys[:: n // 4] = np.arange(len(keys[:: n // 4])) + (0 if sample == "known" else n)
        agree(table, held, keys, rng.integers(0, 1000, n))
        table.check()


@pytest.mark.parametrize("assume_unique", [False, True])
@pytest.mark.parametrize("counted", [False, True])
def test_which_inserts_find_first(assume_unique: bool, counted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of known keys, unless the caller says that there are none, or the table counts what an insert reads."""
    lookups: list[int] = []
    launch = module.launch_find
    monkeypatch.setattr(module, "launch_find", lambda *given: (lookups.append(given[2]), launch(*given)))
    keys = np.arange(100_000)
    table = HashMap("i8", "i8", capacity=2 * len(keys), device="cpu", count_probes=counted)
    table.insert(keys, keys)
    assert not lookups
    new = keys + len(keys) if assume_unique else keys
    assert table.insert(new, new, assume_unique=assume_unique).all() == assume_unique
    assert (len(keys) in lookups) == (not assume_unique and not counted)


@pytest.mark.usefixtures("any_length")
@pytest.mark.parametrize("repeated", [False, True], ids=["different", "repeated"])
@pytest.mark.parametrize("key", ["i8", "u4", "u2", "S8"])
@pytest.mark.parametrize("table", [HashMap, HashSet])
@pytest.mark.parametrize("design", design_names())
def test_inserts_of_shares_of_new_keys(
    design: str, table: type, key: str, repeated: bool, rng: np.random.Generator
) -> None:
    made = table(key, *([] if table is HashSet else ["i8"]), capacity=200, design=design, device="cpu")
    held: dict[int, int] = {}
    for share in (1, *SHARES):
        keys = batch(rng, np.array(list(held) or [0]), share, 200, repeated=repeated)
        values = rng.integers(0, 30_000, len(keys))
        given = keys.astype(key)
        adding = keys[made.insert(given) if table is HashSet else made.insert(given, values)]
        assert sorted(adding.tolist()) == sorted(set(keys.tolist()) - held.keys())
        firsts = {} if table is HashSet else dict(zip(keys.tolist(), made[given].tolist(), strict=True))
        assert all(firsts[number] == held[number] for number in firsts.keys() & held.keys())
        offered = set(zip(keys.tolist(), values.tolist(), strict=True))
        assert {pair for pair in firsts.items() if pair[0] not in held} <= offered
        held |= {number: firsts.get(number, 0) for number in adding.tolist()}
        assert len(made) == len(held)
    made.check()


@pytest.mark.parametrize("n", [6000, 20_000])
def test_a_full_table_names_the_keys(n: int, rng: np.random.Generator) -> None:
    table = HashMap("i8", "i8", capacity=n, on_full="raise", device="cpu")
    known, room = np.arange(n), table.stats().slots
    table.insert(known, known)
    keys = rng.permutation(np.concatenate([np.resize(known, 20 * room), n + np.arange(2 * room)]))
    with pytest.raises(TableFull) as caught:
        table.find_or_insert(keys, keys)
    assert len(caught.value.keys) and (caught.value.keys >= n).all()
    assert len(table) == n and (table[known] == known).all()


@pytest.mark.parametrize("share", [0.05, 0.95])
def test_memory_that_is_refused_behind_the_insert_changes_no_answer(share: float, rng: np.random.Generator) -> None:
    """The keys are in then, so the call must not fail."""
    n = 20_000

    def made() -> tuple[HashMap, dict[int, int]]:
        table, held = HashMap("i8", "i8", capacity=4 * n, device="cpu", seed=1), dict[int, int]()
        agree(table, held, np.arange(n), np.arange(n))
        return table, held

    keys = batch(rng, np.arange(n), share, n, repeated=False)
    answered = 0
    for number in range(1, 100):
        table, held = made()
        with refusing(engine_for("cpu"), number, once=False) as count:
            try:
                agree(table, held, keys, keys)
                answered += bool(count.refused)
            except MemoryError:
                assert len(table) == n
        table.check()
        if not count.refused:
            break
    assert answered or share < 0.5


FAULTY = [
    scenario
    for scenario in scenarios(
        "cpu", ["buckets", "subtables", "tickets", "strings", "tiers"], ["find_or_insert", "insert"]
    )
    if not (scenario.grows and str(scenario.family) == "tiers")
]


@pytest.mark.usefixtures("any_length")
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("scenario", FAULTY, ids=str)
def test_faults(scenario: Scenario, known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever walk comes first, a fault leaves the table as it was."""
    monkeypatch.setattr(module, "_seems_known", lambda *_: known)
    check_harmless(all_faults(scenario, every=11))
