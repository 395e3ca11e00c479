"""Updates that find no memory, wherever they ask for it: the table is as it was."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from support.cases import design_names
from support.engines import missing
from support.faults import FAMILIES, SOME, VERBS, Scenario, refusals, scenarios
from support.inside import parts_of
from warphash import HashMap, TableFull

DESIGNS = [name for name in design_names() if name != "dynamic_cuckoo"]
HELD = np.arange(300)
GIVEN = np.concatenate([np.arange(100), np.arange(1000, 1500), np.arange(1000, 1200)])
"""Keys of a batch: some are held, others are new, some of which repeat."""


def keys_of(ids: np.ndarray, key: str) -> np.ndarray:
    return ids.astype(key) if key != "V24" else np.repeat(ids.astype("u8"), 3).view("V24")


def change(table: Any, verb: str, keys: np.ndarray) -> None:
    values = np.full(len(keys), 7, "u8")
    if verb == "erase":
        table.erase(keys)
    elif verb == "shrink":
        table.shrink()
    elif verb == "reserve":
        table.reserve(5000)
    elif verb == "upsert":
        table.upsert(keys, values, "add")
    else:
        getattr(table, verb)(keys, values)


@pytest.mark.parametrize("key", ["u8", "u2", "V24"])
@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("verb", ["insert", "assign", "upsert", "find_or_insert", "erase", "shrink", "reserve"])
def test_no_memory_leaves_the_table_as_it_was(
    monkeypatch: pytest.MonkeyPatch, verb: str, design: str, key: str
) -> None:
    """All allocations fail from the first one on, then from the second, until there are as many as are needed."""
    table = HashMap(key, "u8", capacity=64, design=design, device="cpu", seed=3)
    table.insert(keys_of(HELD, key), HELD.astype("u8"))
    engine = parts_of(table).front.engine
    allocate, left = engine.allocate, [0]

    def scarce(*given: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise MemoryError("none left")
        return allocate(*given)

    possible, done = 0, False
    while not done:
        with monkeypatch.context() as patch:
            patch.setattr(engine, "allocate", scarce)
            left[0] = possible
            try:
                change(table, verb, keys_of(GIVEN, key))
                done = True
            except (MemoryError, TableFull):
                possible += 1
        if not done:
            assert len(table) == len(HELD)
            assert (table[keys_of(HELD, key)] == HELD).all()
            assert not table.contains(keys_of(GIVEN[100:], key)).any()
        table.check()
    expected = {"erase": 200, "shrink": 300, "reserve": 300}.get(verb, 800)
    assert len(table) == expected


READ = ("find", "contains", "__getitem__", "find_all", "count", "probe_counts", "check", "stats", "__len__")
"""Verbs that only look; `copy` and `to_arrays`, which ask for much memory, are tried like updates."""


def crossed() -> list[Any]:
    """Every verb that asks for memory, with every family and engine; on any day, fewer of the emulated engine."""
    verbs = [verb for verb in VERBS if verb not in (*READ, "clear")]
    marked = []
    for device in ("cpu", "emulated"):
        for scenario in [] if missing(device) else scenarios(device, FAMILIES, verbs):
            daily = scenario.family.name in SOME
            if device == "emulated":
                daily &= scenario.verb.name in ("insert", "erase", "shrink") and not scenario.grows
            marked.append(pytest.param(scenario, id=str(scenario), marks=[pytest.mark.slow] * (not daily)))
    return marked


@pytest.mark.parametrize("once", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["once", "for_good"])
@pytest.mark.parametrize("scenario", crossed())
def test_a_call_that_is_refused_memory_changes_nothing(scenario: Scenario, once: bool) -> None:
    """Each allocation in turn is refused, ``once`` or with all behind it."""
    for fault in refusals(scenario, once=once):
        assert not fault.harm(), fault


# ---- imports
VERBS_WITHOUT_IMPORTS = """
import sys, tempfile
import numpy as np
from warphash import HashMap, HashSet, MultiMap, WarphashError
from warphash.designs import registry

class Refusal:
    def find_spec(self, name, path=None, target=None):
        imported.append((what, name))

imported, what = [], None
sys.meta_path.insert(0, Refusal())
n, file = 3000, tempfile.mktemp()

class Array(np.ndarray):
    pass

def calls(keys, values):
    pairs = (keys,) if values is None else (keys, values)
    yield from (("insert", pairs), ("insert", [part[:10] for part in pairs]), ("find", (keys,)), ("contains", (keys,)))
    yield from (("contains", (keys.view(Array),)), ("assign", pairs), ("find_or_insert", pairs), ("setdefault", pairs))
    yield from (("upsert", (*pairs, op)) for op in ("max", "last", "first"))
    yield from (("get", (keys, 0)), ("pop", (keys[20:30],)), ("erase", (keys[:5],)))
    yield ("erase_if", ("keys", "<", keys[7]))
    yield from (("execute", (np.zeros(n, "u1"), *pairs)), ("probe_counts", (keys,)), ("guest_counts", (keys,)))
    yield from (("find_all", (keys,)), ("count", (keys,)), ("evict", (3,)), ("plan", (5,)), ("update", ({},)))
    yield from ((name, ()) for name in "copy stats check keys to_arrays items values flush __reduce__ __repr__".split())
    yield from (("_repr_html_", ()), ("save", (file,)), ("reserve", (100_000,)), ("shrink", ()), ("clear", ()))
    yield from (("__or__", ("twin",)), ("__ior__", ("twin",)), ("__eq__", ("twin",)), ("__and__", ("twin",)))
    yield from (("insert", pairs), ("close", ()))

def run(kind, key, value, **options):
    global what
    what = None
    try:
        table, twin = (kind(key, *([] if value is None else [value]), **options) for _ in range(2))
    except WarphashError:
        return
    imported.clear()
    keys = np.arange(n).astype(key) if key != "str" else np.arange(n).astype(str)
    dtype = np.dtype(value)
    values = None if value is None else np.zeros((n, *dtype.shape), dtype.base)
    for verb, arguments in calls(keys, values):
        what = (kind.__name__, key, options, verb)
        try:
            getattr(table, verb)(*(twin if isinstance(each, str) and each == "twin" else each for each in arguments))
        except (AttributeError, KeyError, TypeError, WarphashError):
            pass
    found.extend(imported)

found = []
for design in registry.names():
    for key, value in (("i8", "i8"), ("S12", "f4"), ("i4", ("f4", 3))):
        run(HashMap, key, value, design=design, device="cpu")
    run(HashSet, "i8", None, design=design, device="cpu")
run(MultiMap, "i8", "i8", device="cpu")
run(HashMap, "i8", "i8", device="cpu", max_size=100, evict="lfu")
run(HashMap, "i8", "i8", device="cpu", max_size=100, evict="lru")
run(HashMap, "str", "i8")
run(HashMap, "str", "i8", max_size=100, evict="random")
run(HashMap, "i8", "i8", nulls="key")
print(*found, sep="\\n", end="")
"""


def test_a_verb_imports_no_module() -> None:
    """An import takes memory, which a verb may not find. Then comes an ImportError in place of a MemoryError."""
    run = subprocess.run([sys.executable, "-c", VERBS_WITHOUT_IMPORTS], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


FIRST_INSERT = """
import resource, sys
import numpy as np
from warphash import HashMap
keys = np.arange(2_000_000)
tables = [HashMap("i8", "i8", design=design, device="cpu") for design in sys.argv[1:]]
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (4 << 20),) * 2)
for table in tables:
    try:
        table.insert(keys, keys)
    except MemoryError:
        assert len(table) == 0 and table.insert(keys[:9], keys[:9]).all()
        table.check()
        print("refused")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_first_insert_with_little_memory() -> None:
    designs = ["cuckoo", "slab", "dynamic_cuckoo", "quotient_cuckoo", "tiered"]
    run = subprocess.run([sys.executable, "-c", FIRST_INSERT, *designs], capture_output=True, text=True, check=False)
    assert (run.stdout, run.stderr) == ("refused\n" * len(designs), "")


@pytest.mark.parametrize("first", ["table.base", "table.archive", "table.bounded", "storage.make"])
def test_any_module_may_be_imported_first(first: str) -> None:
    """The attributes of the package import the tables, which must not happen half way through their own import."""
    subprocess.run([sys.executable, "-c", f"import warphash.{first}, warphash; warphash.HashMap"], check=True)
