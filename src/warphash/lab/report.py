"""Format measurements as a table for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.table import Table

from .contest import Contest
from .runner import Measurement, Setting

__all__ = ["LABELS", "label", "render", "render_contest"]

_PLAIN: dict[str, Any] = {
    "box": box.SIMPLE_HEAD,
    "pad_edge": False,
    "padding": 0,
    "title_justify": "left",
    "caption_justify": "left",
}

LABELS = {
    "build unique": "build\nunique",
    "build": "build",
    "insert unique": "insert\nunique",
    "insert": "insert",
    "find 100": "find\nall",
    "find 50": "find\nhalf",
    "find 0": "find\nnone",
}
"""Column heads of the operations, in their order in a report."""


def render(measurements: Sequence[Measurement], data: str) -> Table:
    """A table of at most 80 columns: a row of rates for each design, with the best rate of each operation in bold."""
    mine = [m for m in measurements if m.data == data]
    operations = [name for name in LABELS if any(m.operation == name for m in mine)]
    first = mine[0]
    types = f"{first.key_dtype} to {first.value_dtype or 'nothing'}"
    # The rates of a GPU are in billions, so that a rate needs no more than four characters.
    unit, name_of_unit = (1e9, "Billion") if max(m.rate_per_s for m in mine) >= 1e9 else (1e6, "Million")
    table = Table(
        title=f"[bold]{data}[/]: {first.n:,} keys, {types}, {first.device}",
        caption=f"{name_of_unit} keys per second; {_bytes_per_pair(mine)} bytes per pair. For present|absent keys:\n"
        "probes: buckets read per key; of ceiling: share of the rate at which the\n"
        "memory could serve these random reads, measured in this run.",
        **_PLAIN,
    )
    table.add_column("design", no_wrap=True)
    for head in (*(LABELS[name] for name in operations), "load", "probes", "of\nceiling", "ok"):
        table.add_column(head, justify="right", no_wrap=True)
    rows: dict[str, dict[str, Measurement]] = {}
    for m in mine:
        rows.setdefault(label(m), {})[m.operation] = m
    best = {name: max(m.rate_per_s for m in mine if m.operation == name) for name in operations}
    for name, row in rows.items():
        some = next(iter(row.values()))
        finds = [row[f"find {share}"] for share in (100, 0) if f"find {share}" in row]
        table.add_row(
            name.replace("_", " "),
            *(_rate(row.get(operation), best[operation], unit) for operation in operations),
            f"{some.load_factor:.2f}",
            "|".join(f"{m.probes_per_key:.2f}" for m in finds),
            "|".join(f"{m.ceiling_ratio:.2f}" for m in finds if m.ceiling_ratio is not None),
            _verdict(sum(m.mismatches for m in row.values())),
        )
    return table


def label(m: Measurement) -> str:
    """Name of the design, with the parameter that distinguishes its variants."""
    telling = ("slots_per_bucket",) if "slots_per_bucket" in m.parameters else ()
    return Setting(m.design, {name: m.parameters[name] for name in telling}).label


def render_contest(contests: Sequence[Contest], data: str) -> Table:
    """A table with a row for each contestant. The brackets have the rate of warphash over that of the contestant."""
    ours, *rivals = [c for c in contests if c.data == data]
    table = Table(
        title=f"[bold]{data}[/]: warphash and other libraries on the CPU, {ours.n:,} keys, {ours.threads_told}",
        caption="Million keys per second (the rate of warphash over this rate).",
        **_PLAIN,
    )
    table.add_column("", no_wrap=True)
    for head in ("build", "find all", "find half", "find none", "ok"):
        table.add_column(head, justify="right", no_wrap=True)
    for c in (ours, *rivals):
        cells = []
        for what, mine in ours.rates.items():
            its = c.rates.get(what)
            times = "" if its is None or c is ours else f" ({mine / its:,.1f} x)"
            cells.append("in find" if its is None else f"{_four_characters(its / 1e6)}{times}")
        table.add_row(c.name, *cells, _verdict(c.mismatches))
    return table


def _rate(m: Measurement | None, best: float, unit: float) -> str:
    if m is None:
        return ""
    if m.mismatches:
        return "[bold red]FAIL[/]"
    text = _four_characters(m.rate_per_s / unit)
    return f"[bold]{text}[/]" if m.rate_per_s == best else text


def _four_characters(rate: float) -> str:
    """A rate below 10,000."""
    return f"{rate:.{0 if rate >= 99.95 else 1 if rate >= 9.995 else 2}f}"


def _bytes_per_pair(measurements: Sequence[Measurement]) -> str:
    found = [m.bytes_per_pair for m in measurements]
    least, most = f"{min(found):.1f}", f"{max(found):.1f}"
    return least if least == most else f"{least} to {most}"


def _verdict(wrong: int) -> str:
    return "[green]yes[/]" if not wrong else "[bold red]NO[/]"
