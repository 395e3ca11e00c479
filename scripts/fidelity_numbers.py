"""Compare the numbers of docs/fidelity.md with their sources, or write the measured ones anew.

::

    python scripts/fidelity_numbers.py          # names every number that has no source; exits with 1 if there is one
    python scripts/fidelity_numbers.py --write  # first writes what the results files of the figures have now

docs/fidelity.toml has an entry for each row that names a figure. ``numbers`` of the entry has, in their order, all
numbers of the row in the columns "here", "outcome" and "measured". ``note`` has those of the paragraph below the table
that begins with the name of the row. A number stands for itself. A text is a Python expression that gives one number or
several. A figure is a function there::

    fig05("build unique", "b = 8", 0.9)          # one value: panel, series, x
    fig05("build unique", "b = 8", [0.8, 0.9])   # two numbers
    dy10("profile efficiency of tw", "DyHash")   # all values of a line, by x
    dyalpha("dynamic time of tw", "DyHash", 0.4, "resize")   # a part of a time
    slab4.ratio("find 0", "cuckoo", "slab list")   # a ratio that the file has
    sweep_size_hh("find 100", "two_level_cuckoo", 1000)   # a sweep: panel, design, x
    rivals_one_thread("random int32", "dense_hash_map", 10_000_000, "build")   # a contest: data, library, keys, part

The panel and the series are as in ``results/h200/figures/NAME.json``, those of a sweep as in
``results/h200/NAME.json``, and those of a contest as in ``results/cpu/NAME.json``. A value of a sweep or a contest is
in million keys a second. NumPy's rules hold between values, and `span` (least and most), `spread` (per cent by which
the most exceeds the least), `mean`, `median`, `min` and `max` take what they are given as one list.

A number that stands for itself has a source, too. It is one of these:

- a place in a figure that an expression names: an x, the number of keys, a number in the name of a panel or series,
- a number of a page that the row links to, or of a test that it names,
- a number in ``given`` of the entry: what was chosen and not measured, such as a size, or what the paper says.

Of rows that name no figure, the columns "outcome" and "measured" are looked at. They need an entry for ``given`` only.
"""

from __future__ import annotations

import json
import math
import re
import sys
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "fidelity.md"
SOURCES = ROOT / "docs" / "fidelity.toml"
RESULTS = ROOT / "results"

ROW = re.compile(r"^\| <a id=\"([^\"]+)\"></a>`[^`]+` \|.*\|$", re.M)
NOTE = re.compile(r"^`([\w-]+)`: (?:.+\n)+", re.M)
NUMBER = re.compile(r"(?<![\w.^,])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e-?\d+)?(?:\^\d+)?(?!\w)")
NO_TEXT = re.compile(r"`[^`]*`|\]\([^)]*\)|<[^>]*>")
"""What a cell has beside its text: code, the target of a link, an anchor."""

LINK = re.compile(r"\]\(([\w/.-]+\.md)[^)]*\)")
TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
COLUMNS = ("row", "claim", "here", "outcome", "shown by", "measured")
UNITS = (1, 1e3, 1e6, 1e9, 0.01)
"""Of a number whose source has it without a unit: thousands, millions, billions, per cent."""


class Figure:
    """The values of one figure, and the places where they stand."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.places: set[float] = set()
        """Of all values that were asked for so far."""

    def __call__(self, panel: str, series: str, x: Any = None, part: str = "") -> Any:
        """Values by x: of one x, of a list of them in their order, or of all, in ascending order."""
        record, lines = _read(self.name)
        line = lines.get((panel, series, part))
        if line is None:
            raise KeyError(f"{self.name} has no line {series!r} in a panel {panel!r}")
        wanted = sorted(line) if x is None else [float(each) for each in np.atleast_1d(x)]
        self.places.update([*wanted, float(record.get("keys", 0))])
        self.places.update(_value(text) for text in NUMBER.findall(f"{panel} {series}"))
        values = [line[each] for each in wanted]
        return values[0] if np.isscalar(x) else np.array(values)

    def ratio(self, panel: str, of: str, over: str) -> float:
        """A ratio that the file has."""
        for each in _read(self.name)[0]["ratios"]:
            if (each["ratio"]["panel"], each["ratio"]["of"], each["ratio"]["over"]) == (panel, of, over):
                if isinstance(at := each["ratio"]["at"], int | float):
                    self.places.add(float(at))
                return float(each["value"])
        raise KeyError(f"{self.name} has no ratio of {of!r} over {over!r} in a panel {panel!r}")


@cache
def _read(figure: str) -> tuple[dict[str, Any], dict[tuple[str, str, str], dict[float, float]]]:
    """The file of a figure, a sweep or a contest, and its values: by panel, series and part, then by x."""
    record: dict[str, Any] = json.loads(_files()[figure].read_text(encoding="utf-8"))
    lines: dict[tuple[str, str, str], dict[float, float]] = {}
    for contest in record.get("contests", []):
        for part in ("build", "present", "half", "absent"):
            line = lines.setdefault((contest["data"], contest["name"], part), {})
            line[float(contest["n"])] = (contest[f"{part}_per_s"] or math.nan) / 1e6
    for point in record.get("points", []):
        line = lines.setdefault((point["panel"], point.get("series") or point["design"], point.get("part", "")), {})
        line[float(point["x"])] = point["value"] if "value" in point else point["rate_per_s"] / 1e6
    return record, lines


@cache
def _files() -> dict[str, Path]:
    """The files of figures, sweeps and contests, by the names that expressions have for them."""
    patterns = ("h200/figures/*.json", "h200/sweep-*.json", "cpu/rivals*.json")
    return {path.stem.replace("-", "_"): path for pattern in patterns for path in RESULTS.glob(pattern)}


def _of_all(function: Any) -> Any:
    return lambda *parts: function(np.concatenate([np.ravel(part) for part in parts]))


FUNCTIONS = {
    "span": _of_all(lambda values: np.array([values.min(), values.max()])),
    "spread": _of_all(lambda values: 100 * (values.max() / values.min() - 1)),
    "mean": _of_all(np.mean),
    "median": _of_all(np.median),
    "min": _of_all(np.min),
    "max": _of_all(np.max),
}


def _value(text: str) -> float:
    base, _, power = text.replace(",", "").partition("^")
    return math.pow(float(base), float(power or 1))


def _written_like(text: str, value: float) -> str:
    """A value with as many digits as a number has behind the point, or with the first four in front of it."""
    mantissa, _, exponent = text.partition("e")
    digits = len(mantissa.partition(".")[2])
    if exponent:
        return re.sub(r"e([+-])0*", lambda sign: "e" + sign[1].strip("+"), f"{value:.{digits}e}")
    if digits == 0 and abs(value) >= 10_000:
        value = float(f"{value:.4g}")
    return f"{value:,.{digits}f}"


def _text_of(markdown: str) -> str:
    """The same with blanks in place of code, links' targets and anchors."""
    return NO_TEXT.sub(lambda match: " " * len(match[0]), markdown)


def numbers_of_row(line: str) -> list[re.Match[str]]:
    """The numbers in the cells that are looked at."""
    text = _text_of(line)
    bars = [bar.start() for bar in re.finditer(r"\|", text)]
    columns = ("here", "outcome", "measured") if figures_of(line) else ("outcome", "measured")
    cells = [(bars[COLUMNS.index(column)], bars[COLUMNS.index(column) + 1]) for column in columns]
    return [number for cell in cells for number in NUMBER.finditer(text, *cell)]


def numbers_of_note(note: str) -> list[re.Match[str]]:
    """The numbers in a paragraph below a table."""
    return list(NUMBER.finditer(_text_of(note)))


@cache
def _numbers_of(path: Path) -> frozenset[float]:
    return frozenset(_value(number) for number in NUMBER.findall(path.read_text(encoding="utf-8").replace("_", "")))


def _said_elsewhere(line: str) -> set[float]:
    """All numbers of the pages that a row links to, and of the tests that it names. A test may have 0.01 for 1 %."""
    pages = [PAGE.parent / page for page in LINK.findall(line)]
    tests = [ROOT / test for test, _ in TEST.findall(line)]
    of_tests = {number for path in tests for number in _numbers_of(path)}
    return {number for path in pages for number in _numbers_of(path)} | of_tests | {100 * each for each in of_tests}


def figures_of(line: str) -> list[str]:
    """The figures that a row is shown by."""
    names = re.findall(r"`([^`]+)`", line.split("|")[1 + COLUMNS.index("shown by")])
    return [name for name in names if "/" not in name]


def _listed(sources: list[Any], figures: Mapping[str, Figure]) -> list[tuple[Any, float]]:
    """Each number that a list of an entry has or gives, with its source."""
    return [
        (source, float(value))
        for source in sources
        for value in np.atleast_1d(eval(source, {**FUNCTIONS, **figures}) if isinstance(source, str) else source)
    ]


def _replaced(
    text: str, numbers: list[re.Match[str]], listed: list[tuple[Any, float]], known: set[float]
) -> tuple[str, list[str]]:
    """The text with the numbers that its sources have now, and what is wrong with the text as it is."""
    problems = []
    for number, (source, value) in reversed(list(zip(numbers, listed, strict=True))):
        if isinstance(source, str):
            written = _written_like(number[0], value)
            if written != number[0]:
                problems.append(f"has {number[0]}, and {source} is {written}")
            text = text[: number.start()] + written + text[number.end() :]
        elif _value(number[0]) != value:
            problems.append(f"has {number[0]}, and {source} is listed")
        elif not any(math.isclose(value * unit, each) for unit in UNITS for each in known):
            problems.append(f"{number[0]} has no source")
    return text, problems[::-1]


def _checked(line: str, note: str, entry: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """A row and its paragraph with the numbers that the figures have now, and what is wrong with them as they are."""
    figures = {name: Figure(name) for name in _files()}
    texts = [("numbers", line, numbers_of_row(line)), ("note", note, numbers_of_note(note))]
    of_texts = [
        _listed(entry.get(key, [_value(number[0]) for number in numbers]), figures) for key, _, numbers in texts
    ]
    known = {place for figure in figures.values() for place in figure.places}
    known |= _said_elsewhere(line + note) | set(map(float, entry.get("given", [])))
    written, problems = [], []
    for (key, text, numbers), listed in zip(texts, of_texts, strict=True):
        wrong = []
        if numbers and figures_of(line) and key not in entry:
            wrong = [f"names a figure, and {SOURCES.name} has no {key!r} of it"]
        elif len(numbers) != len(listed):
            said = " ".join(number[0] for number in numbers)
            wrong = [f"has {len(numbers)} numbers ({said}), and {len(listed)} in {key!r}"]
        else:
            text, wrong = _replaced(text, numbers, listed, known)
        written.append(text)
        problems += wrong
    return written, problems


def rows_of(page: str) -> dict[str, str]:
    """The rows with a claim, an outcome and what was measured, by name."""
    return {match[1]: match[0] for match in ROW.finditer(page) if match[0].count("|") == len(COLUMNS) + 1}


def notes_of(page: str) -> dict[str, str]:
    """The paragraphs below tables, by the name of their row."""
    return {match[1]: match[0] for match in NOTE.finditer(page)}


def compared(page: str, sources: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The page with the numbers that its figures have now, and what is wrong with the page as it is."""
    rows, notes = rows_of(page), notes_of(page)
    problems = [f"{name}: {SOURCES.name} has an entry without a row" for name in sources if name not in rows]
    problems += [f"{name}: a paragraph without a row" for name in notes if name not in rows]
    for name, line in rows.items():
        note = notes.get(name, "")
        written, wrong = _checked(line, note, sources.get(name, {}))
        for old, new in zip((line, note), written, strict=True):
            page = page.replace(old, new) if old else page
        problems += [f"{name}: {each}" for each in wrong]
    return page, problems


def main() -> None:
    sources = tomllib.loads(SOURCES.read_text(encoding="utf-8"))
    page = PAGE.read_text(encoding="utf-8")
    if sys.argv[1:] == ["--write"]:
        page, _ = compared(page, sources)
        PAGE.write_text(page, encoding="utf-8")
    problems = compared(page, sources)[1]
    print(*problems, sep="\n")
    raise SystemExit(bool(problems))


if __name__ == "__main__":
    main()
