"""The scripts that are run by hand. What a sanitizer is given runs on every engine, and notices wrong tables."""

from __future__ import annotations

import re
import runpy
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.engines import one_of_each
from warphash import HashMap
from warphash.designs import registry
from warphash.storage.owners.owner_order import OwnerOrder
from warphash.table.base import BaseTable

SCRIPTS = Path(__file__).parents[1] / "scripts"
SCRIPT = SCRIPTS / "exercise_kernels.py"


def exercise(monkeypatch: pytest.MonkeyPatch, *options: str) -> None:
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *options])
    runpy.run_path(str(SCRIPT), run_name="__main__")


def test_each_design_is_exercised(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    exercise(monkeypatch, "--device", "cpu", "--keys", "300")
    assert [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()] == [
        *registry.names(),
        "groups",
        "joins",
        "owners",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("device", one_of_each("emulated"))
def test_the_kernels_of_a_gpu_are_exercised(monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    exercise(monkeypatch, "--device", device, "--keys", "60")


def test_a_wrong_table_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    erase = BaseTable.erase

    def one_less(table: Any, keys: Any) -> Any:
        return erase(table, np.asarray(keys)[1:])

    monkeypatch.setattr(BaseTable, "erase", one_less)
    with pytest.raises(AssertionError, match="should hold"):
        exercise(monkeypatch, "--device", "cpu", "--keys", "100", "--design", "cuckoo")


def readme_rates(monkeypatch: pytest.MonkeyPatch, readme: Path, rates: Path, *options: str) -> None:
    """Run the script on copies of README.md and results/README.md."""
    path = SCRIPTS / "readme_rates.py"
    monkeypatch.setattr(sys, "argv", [str(path), *options])
    names = runpy.run_path(str(path))
    own = names["main"].__globals__
    sections = {readme: own["SECTIONS"][own["README"]], rates: own["SECTIONS"][own["RATES"]]}
    for name, value in (("README", readme), ("RATES", rates), ("SECTIONS", sections)):
        monkeypatch.setitem(own, name, value)
    names["main"]()


def test_a_script_writes_the_rates_of_readme(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    root = SCRIPTS.parent
    right = [(root / name).read_text() for name in ("README.md", "results/README.md")]
    copies = tmp_path / "README.md", tmp_path / "rates.md"
    copies[0].write_text(right[0].replace(" billion distinct", "1 billion distinct"))
    copies[1].write_text(re.sub(r"\d\d\.\d \|", "99.9 |", right[1]).replace("Lookups reach ", "Lookups reach 1"))
    assert all(copy.read_text() != text for copy, text in zip(copies, right, strict=True))
    with pytest.raises(SystemExit, match="other rates than its files"):
        readme_rates(monkeypatch, *copies, "--check")
    readme_rates(monkeypatch, *copies)
    assert [copy.read_text() for copy in copies] == right
    readme_rates(monkeypatch, *copies, "--check")


def test_the_pictures_of_jobs_are_drawn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    script = SCRIPTS / "draw_jobs.py"
    monkeypatch.setattr(sys, "argv", [str(script), "--to", str(tmp_path)])
    runpy.run_path(str(script), run_name="__main__")
    six, all_jobs = (tmp_path / name for name in ("docs/jobs.png", "results/cpu/jobs.png"))
    assert 10_000 < six.stat().st_size < all_jobs.stat().st_size


def try_install(monkeypatch: pytest.MonkeyPatch, seconds: float, *options: str) -> list[list[str]]:
    """Run the script with steps that take so many seconds each, and do nothing; their commands."""
    script, commands = SCRIPTS / "try_install.py", []
    monkeypatch.setattr(sys, "argv", [str(script), *options])
    names = runpy.run_path(str(script))

    def timed(what: str, command: list[str], environment: dict[str, str], folder: str) -> float:
        commands.append(command)
        if what.startswith("pip") and command[-1].endswith(".whl"):
            assert shutil.which("cc", path=environment["PATH"]) is None
        return seconds

    monkeypatch.setitem(names["main"].__globals__, "timed", timed)
    names["main"]()
    return commands


def test_an_installation_is_tried_from_nothing_to_the_first_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / ".git").mkdir()
    clone, venv, pip, answer, doctor = try_install(monkeypatch, 5, str(tmp_path), "--within", "20")
    assert "  20.0 s  from nothing to the first answer" in capsys.readouterr().out
    assert clone[:2] == ["git", "clone"] and pip[-1] == clone[-1] and venv[1:3] == ["-m", "venv"]
    assert answer[-1] in (SCRIPTS.parent / "README.md").read_text(encoding="utf-8") and "assert" in answer[-1]
    assert doctor[1] == "doctor"
    with pytest.raises(SystemExit, match=r"expected the first answer within 14 s, got it after 15\.0"):
        try_install(monkeypatch, 5, "some.whl", "--within", "14")
    assert len(try_install(monkeypatch, 5, "--here")) == 2


def test_calls_are_timed_beside_a_product(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    script = SCRIPT.with_name("time_calls.py")
    given = ["--device", "cpu", "--libraries", "numpy", "--keys", "100", "--loops", "2"]
    monkeypatch.setattr(sys, "argv", [str(script), *given])
    runpy.run_path(str(script), run_name="__main__")
    calls, *first = capsys.readouterr().out.splitlines()
    assert calls.startswith("numpy, bucketed_cuckoo, 100 keys, us of the fastest and the median loop")
    for verb in ("find", "contains", "insert", "assign", "from_arrays"):
        assert f"{verb} " in calls
    assert [line.partition(", first insert and find of 100 keys, ")[2].partition(":")[0] for line in first] == [
        "compiled",
        "from the cache",
    ]


def batches(monkeypatch: pytest.MonkeyPatch, *options: str) -> None:
    script = SCRIPT.with_name("time_batches.py")
    given = ["--device", "cpu", "--n", "2000", "--base", "5000", "--repetitions", "2", *options]
    monkeypatch.setattr(sys, "argv", [str(script), *given])
    runpy.run_path(str(script), run_name="__main__")


@pytest.mark.parametrize("types", [("uint32", "uint32"), ("uint64", "uint64"), ("uint64", "uint32")])
def test_batches_are_timed_and_verified(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], types: tuple[str, str]
) -> None:
    batches(monkeypatch, "--types", *types, "--rows", "build", "insert", "find", "erase", "sum", "grow", "huge")
    _, *rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 19 and all(row.endswith(" of 2, 0 wrong") for row in rows)


@pytest.mark.parametrize("row", ["build", "insert", "find", "erase", "sum", "grow", "huge"])
def test_a_wrong_batch_is_no_rate(monkeypatch: pytest.MonkeyPatch, row: str) -> None:
    find = HashMap.find

    def one_less(table: Any, keys: Any) -> Any:
        values, found = find(table, keys)
        found[:1] = ~found[:1]
        return values, found

    monkeypatch.setattr(HashMap, "find", one_less)
    with pytest.raises(SystemExit, match="is not a rate"):
        batches(monkeypatch, "--rows", row)


def orders(monkeypatch: pytest.MonkeyPatch, *options: str) -> None:
    script = SCRIPT.with_name("time_owners.py")
    monkeypatch.setattr(sys, "argv", [str(script), "--device", "cpu", "--n", "3000", "--repetitions", "2", *options])
    runpy.run_path(str(script), run_name="__main__")


def test_orders_of_owners_are_timed_and_verified(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    orders(monkeypatch, "--ranks", "2,9")
    _, *rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 2 * 2 * 5 and all(row.endswith(" of 2, 0 wrong") for row in rows)


@pytest.mark.parametrize("verb", ["move", "restore"])
def test_a_wrong_order_is_no_rate(monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    monkeypatch.setattr(OwnerOrder, verb, lambda order, columns, stream: None)
    with pytest.raises(SystemExit, match="is not a rate"):
        orders(monkeypatch, "--types", "int64", "--ranks", "3")


TIMED = {
    "time_strings": (["--strings", "3000", "--distinct", "3000"], "3,000 strings of 10 to 40 bytes, 3,000 distinct"),
    "time_columns": (["--rows", "3000", "--names", "50"], "3,000 rows of a string and an integer"),
    "time_string_values": (["--pairs", "3000"], "3,000 pairs of int64 and 20 bytes"),
}


@pytest.mark.parametrize("script", TIMED)
def test_tables_of_strings_are_timed(
    script: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each script checks the answers that it times."""
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    options, title = TIMED[script]
    monkeypatch.syspath_prepend(str(SCRIPTS))
    monkeypatch.setattr(sys, "argv", [script, *options, "--runs", "1"])
    runpy.run_path(str(SCRIPTS / f"{script}.py"), run_name="__main__")
    first, *rows = capsys.readouterr().out.splitlines()
    assert first.startswith(title) and len(rows) > 1 and all(row.endswith("/s") for row in rows)
