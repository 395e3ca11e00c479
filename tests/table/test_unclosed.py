"""Tables in files that nobody closes are flushed when they are collected and when the process ends."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
import threading
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.engines import ENGINES, one_of_each
from support.inside import parts_of, storage_of
from warphash import HashMap, HashSet
from warphash.runtime.devices import engine_for
from warphash.table import unclosed

KEYS = np.arange(100, dtype=np.uint64)


class Counted(HashMap[Any, Any]):
    """A subclass with attributes of its own."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.own = self  # a cycle


MAKERS: dict[str, Callable[[Path, str], Any]] = {
    "map": lambda path, device: HashMap("u8", "u8", design="stadium", memory=path, device=device),
    "set": lambda path, device: HashSet("u8", design="stadium", memory=path, device=device),
    "wide": lambda path, device: HashMap("u8", "V40", design="stadium", memory=path, device=device),
    "subclass": lambda path, device: Counted("u8", "u8", design="stadium", memory=path, device=device),
    "through": lambda path, device: HashMap("u8", "u8", design="tiered", memory=path, device=device),
    "back": lambda path, device: HashMap("u8", "u8", design="tiered", write="back", memory=path, device=device),
    "bounded": lambda path, device: HashMap(
        "u8", "u8", design="stadium", max_size=1000, evict="lfu", memory=path, device=device
    ),
}


def fill(table: Any) -> None:
    if isinstance(table, HashSet):
        table.insert(KEYS)
    elif table.value_dtype.itemsize > 8:
        table.insert(KEYS, np.zeros(len(KEYS), "V40"))
    else:
        table.insert(KEYS, KEYS)
        for _ in range(4):
            table.find(KEYS)  # so a cache admits
        table.assign(KEYS, KEYS + np.uint64(7))


def check(kind: str, path: Path, device: str) -> None:
    with (HashSet if kind == "set" else HashMap).open(path, device=device) as table:
        assert len(table) == len(KEYS)
        if kind not in ("set", "wide"):
            assert (table.find(KEYS)[0] == KEYS + np.uint64(7)).all()
        table.check()


@pytest.mark.parametrize("device", one_of_each(*ENGINES))
@pytest.mark.parametrize("kind", MAKERS)
def test_a_table_that_is_collected(tmp_path: Path, kind: str, device: str) -> None:
    path = tmp_path / "table"
    table = MAKERS[kind](path, device)
    fill(table)
    storage = weakref.ref(storage_of(table))
    with pytest.warns(ResourceWarning, match=r"unclosed table in .*table.*close\(\)"):
        del table
        gc.collect()
    assert storage() is None, "the finalizer keeps the storage"
    check(kind, path, device)
    assert [entry.name for entry in tmp_path.iterdir()] == ["table"]


def test_a_table_that_grew_and_an_engine_with_memory_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for mapped in (True, False):
        monkeypatch.setattr(engine_for("cpu"), "shares_host_memory", mapped)
        path = tmp_path / f"table-{mapped}"
        table = MAKERS["map"](path, "cpu")
        many = np.arange(50_000, dtype=np.uint64)
        table.insert(many, many)
        with pytest.warns(ResourceWarning):
            del table
        with HashMap.open(path, device="cpu") as again:
            assert (again.find(many)[0] == many).all()
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("way", ["close", "with", "with that fails", "read"])
def test_what_writes_nothing(tmp_path: Path, way: str) -> None:
    path = tmp_path / "table"
    table = MAKERS["map"](path, "cpu")
    fill(table)
    table.close()
    before = path.read_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        table = HashMap.open(path, device="cpu")
        if way == "close":
            table.close()
        elif way == "with":
            with table:
                pass
        elif way == "with that fails":
            with pytest.raises(ZeroDivisionError), table:
                table.clear()
                _ = 1 // 0
    if way == "read":
        assert len(table) == 100 and table.contains(KEYS).all()
        with pytest.warns(ResourceWarning):
            del table
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            del table
    if "fail" in way or way == "read":
        assert path.read_bytes() == before
    check("map", path, "cpu")


def test_copies_and_pickles_are_no_tables_in_files(tmp_path: Path) -> None:
    path = tmp_path / "table"
    with MAKERS["map"](path, "cpu") as table:
        fill(table)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for twin in (table.copy(), copy.deepcopy(table), pickle.loads(pickle.dumps(table))):
                assert twin.memory == "device" and len(twin) == 100
                twin.clear()
                del twin
    check("map", path, "cpu")


@pytest.mark.parametrize("fate", ["renamed", "replaced"])
def test_a_file_that_lost_its_name_has_a_loud_warning(tmp_path: Path, fate: str) -> None:
    path, moved = tmp_path / "table", tmp_path / "moved"
    table = MAKERS["map"](path, "cpu")
    table.insert(KEYS[:50], KEYS[:50])
    table.flush()
    table.insert(KEYS, KEYS)
    path.rename(moved)
    if fate == "replaced":
        path.write_bytes(b"of somebody else")
    with pytest.warns(RuntimeWarning, match=r"was not closed.*last flush.*moved, removed or replaced"):
        del table
    with HashMap.open(moved, device="cpu") as again:
        assert len(again) == 50
    if fate == "replaced":
        assert path.read_bytes() == b"of somebody else"


def test_a_thread_that_stays_in_a_call_does_not_hang_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unclosed, "_SECONDS", 0.2)
    path = tmp_path / "table"
    table = MAKERS["map"](path, "cpu")
    inside, leave = threading.Event(), threading.Event()
    lock = parts_of(table).guarded.lock
    fill_later = threading.Thread(target=lambda: lock.write(lambda: (inside.set(), leave.wait(60))))
    fill_later.start()
    inside.wait()
    with pytest.warns(RuntimeWarning, match="another thread"):
        table._unclosed()  # as at the end of the process
    leave.set()
    fill_later.join()
    assert lock.write_within(1.0, lambda: None)
    table.insert(KEYS, KEYS)
    table.close()
    assert len(HashMap.open(path, device="cpu")) == 100


def assign_interrupted(table: Any, keys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop an update behind its kernels, before it is counted."""
    array = type(storage_of(table).store.array)
    original = array.update

    def update(self: Any, *args: Any, **options: Any) -> Any:
        original(self, *args, **options)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(array, "update", update)
        table.assign(keys, keys)
    assert storage_of(table).store.pending


@pytest.mark.parametrize("fits", [True, False])
def test_an_interrupted_update_is_finished_first(tmp_path: Path, fits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "table"
    options: dict[str, Any] = {"capacity": 1000 if fits else 110, "on_full": "raise", "device": "cpu"}
    table = HashMap("u8", "u8", design="stadium", memory=path, **options)
    fill(table)
    more = np.arange(50, 150, dtype=np.uint64)
    assign_interrupted(table, more, monkeypatch)
    with pytest.warns(ResourceWarning):
        del table
    with HashMap.open(path, device="cpu") as again:
        again.check()
        found = dict(zip(*(column.tolist() for column in again.to_arrays()), strict=True))
    before = {key: key + 7 for key in range(100)}
    assert found == (before | {key: key for key in range(50, 150)} if fits else before)


def run(code: str, *options: str) -> subprocess.CompletedProcess[str]:
    start = "import os, sys, pathlib, numpy as np, warphash as wh\nKEYS = np.arange(100, dtype='u8')\n"
    command = [sys.executable, *options, "-c", start + code]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


MADE = "m = wh.HashMap('u8', 'u8', design='stadium', memory=pathlib.Path({path!r}), device='cpu', capacity=10)\n"

ENDS = {
    "end": "m.insert(KEYS, KEYS)",
    "exit": "m.insert(KEYS, KEYS); sys.exit(3)",
    "error": "m.insert(KEYS, KEYS); 1 // 0",
    "daemon": (
        "import threading, time\nm.insert(KEYS, KEYS)\n"
        "def work():\n    while True: m.assign(KEYS, KEYS)\n"
        "threading.Thread(target=work, daemon=True).start(); time.sleep(0.1)"
    ),
    "thread": "import threading\nthreading.Thread(target=lambda: m.insert(KEYS, KEYS)).start()",
    "child": (
        "m.insert(KEYS, KEYS)\npid = os.fork()\nif pid == 0: sys.exit(0)\n"
        "os.waitpid(pid, 0); assert m._parts.guarded.storage.store.is_committed is False"
    ),
    "worker": (
        "m.close(); os.unlink({path!r})\nimport multiprocessing\n"
        "def work():\n    global m\n    " + MADE + "    m.insert(KEYS, KEYS)\n"
        "p = multiprocessing.get_context('fork').Process(target=work); p.start(); p.join()"
    ),
    "atexit": "import atexit\natexit.register(lambda: m.insert(KEYS, KEYS))",
}


@pytest.mark.parametrize("end", ENDS)
def test_the_end_of_a_process(tmp_path: Path, end: str) -> None:
    path = tmp_path / "table"
    said = run((MADE + ENDS[end]).replace("{path!r}", repr(str(path))), "-X", "dev")
    assert "ResourceWarning: unclosed table" in said.stderr
    assert said.stderr.count("Traceback") == (end == "error")
    assert said.returncode == {"exit": 3, "error": 1}.get(end, 0)
    with HashMap.open(path, device="cpu") as table:
        assert len(table) == 100 and (table.find(KEYS)[0] == KEYS).all()
    assert [entry.name for entry in tmp_path.iterdir()] == ["table"]


LATE = {
    "alone": "import atexit\nkept = []\natexit.register(lambda: kept.append(make()))",
    "imported first": (
        "import atexit, warphash.table.unclosed, warphash.storage.tickets.table_file\n"
        "kept = []\natexit.register(lambda: kept.append(make()))"
    ),
    "behind finalizers": (
        "import atexit, weakref\nkept = []\natexit.register(lambda: kept.append(make()))\n"
        "weakref.finalize(make, lambda: None)"
    ),
    "local": "import atexit\natexit.register(lambda: [make()].clear())",
    "local behind finalizers": (
        "import atexit, weakref\natexit.register(lambda: [make()].clear())\nweakref.finalize(make, lambda: None)"
    ),
    "changed behind its flush": (
        "import atexit\natexit.register(lambda: m.assign(KEYS, KEYS + np.uint64(7)))\nm = make()\nm.assign(KEYS, KEYS)"
    ),
}
KINDS = {
    "map": "wh.HashMap('u8', 'u8', design='stadium', capacity=10, {at})",
    "host": "wh.HashMap('u8', 'u8', design='stadium', capacity=10, {at})",
    "back": "wh.HashMap('u8', 'u8', design='tiered', write='back', capacity=10, {at})",
    "bounded": "wh.HashMap('u8', 'u8', design='stadium', max_size=1000, evict='lfu', {at})",
}


@pytest.mark.parametrize(
    ("end", "kind"), [*((end, "map") for end in LATE), *(("alone", kind) for kind in KINDS if kind != "map")]
)
def test_a_table_of_an_exit_function(tmp_path: Path, end: str, kind: str) -> None:
    """Python calls no finalizer of what is made or changed there, and imports nothing when it collects the table."""
    path = tmp_path / "table"
    at = f"memory=pathlib.Path({str(path)!r}), device='cpu'"
    host = "    from warphash.runtime.devices import engine_for\n    engine_for('cpu').shares_host_memory = False\n"
    code = (
        f"def make():\n{host if kind == 'host' else ''}    m = {KINDS[kind].format(at=at)}\n"
        "    m.insert(KEYS[:50], KEYS[:50])\n    m.flush()\n    m.insert(KEYS, KEYS)\n    m.erase(KEYS[:10])\n"
        "    m.insert(KEYS[:10], KEYS[:10])\n    m.assign(KEYS, KEYS + np.uint64(7))\n    return m\n"
    )
    said = run(code + LATE[end], "-X", "dev")
    assert "ResourceWarning: unclosed table" in said.stderr and "RuntimeWarning" not in said.stderr
    assert "Traceback" not in said.stderr and said.returncode == 0
    check(kind, path, "cpu")
    assert [entry.name for entry in tmp_path.iterdir()] == ["table"]


def test_a_temporary_folder_goes_after_the_table(tmp_path: Path) -> None:
    code = "import tempfile\nd = tempfile.TemporaryDirectory(dir={path!r})\n" + MADE.replace(
        "{path!r}", "d.name + '/table'"
    )
    said = run((code + "m.insert(KEYS, KEYS)").replace("{path!r}", repr(str(tmp_path))))
    assert (said.returncode, said.stderr, list(tmp_path.iterdir())) == (0, "", [])


def test_a_process_that_is_killed_keeps_what_the_last_flush_confirmed(tmp_path: Path) -> None:
    path = tmp_path / "table"
    code = MADE + "m.insert(KEYS[:50], KEYS[:50]); m.flush(); m.insert(KEYS, KEYS); os.kill(os.getpid(), 9)"
    run(code.replace("{path!r}", repr(str(path))))
    with HashMap.open(path, device="cpu") as table:
        assert len(table) == 50
