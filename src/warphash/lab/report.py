"""Measurements as a table for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.table import Table

from .contest import Contest
from .runner import Measurement, Setting

__all__ = ["LABELS", "label", "render", "render_contest"]

_PLAIN: dict[str, Any] = {"box": box.SIMPLE_HEAD, "padding": (0, 1, 0, 0), "pad_edge": False}

LABELS = {
    "build unique": "build\nunique",
    "build": "build",
    "insert unique": "insert\nunique",
    "insert": "insert",
    "find 100": "find\nall",
    "find 50": "find\nhalf",
    "find 0": "find\nnone",
}
"""Column heads of the operations, in the order of a report."""


def render(measurements: Sequence[Measurement], data: str) -> Table:
    """One row a design: rates in million keys a second, the best of each column in bold."""
    mine = [m for m in measurements if m.data == data]
    operations = [name for name in LABELS if any(m.operation == name for m in mine)]
    first = mine[0]
    table = Table(
        title=f"{data}: {first.n:,} keys, {first.key} to {first.value or 'nothing'}, on {first.device}",
        caption="million keys per second; probes: buckets read by a find of a present | absent key",
        title_justify="left",
        caption_justify="left",
        **_PLAIN,
    )
    table.add_column("design", no_wrap=True)
    for name in operations:
        table.add_column(LABELS[name], justify="right")
    for head in ("load", "probes", "bytes/\npair", "right?"):
        table.add_column(head, justify="right")
    rows: dict[str, dict[str, Measurement]] = {}
    for m in mine:
        rows.setdefault(label(m), {})[m.operation] = m
    best = {name: max(m.rate_per_s for m in mine if m.operation == name) for name in operations}
    for name, row in rows.items():
        cells = []
        for operation in operations:
            m = row.get(operation)
            text = "" if m is None else "[red]FAILED[/]" if m.mismatches else f"{m.rate_per_s / 1e6:,.1f}"
            cells.append(f"[bold]{text}[/]" if m and m.rate_per_s == best[operation] else text)
        some = next(iter(row.values()))
        probes = [row[f"find {share}"].probes_per_key for share in (100, 0) if f"find {share}" in row]
        wrong = sum(m.mismatches for m in row.values())
        table.add_row(
            name,
            *cells,
            f"{some.load_factor:.2f}",
            "|".join(f"{p:.2f}" for p in probes if p is not None),
            f"{some.bytes_per_pair:.1f}",
            "[green]yes[/]" if not wrong else f"[red]{wrong:,} wrong[/]",
        )
    return table


def label(m: Measurement) -> str:
    """The design with the parameters that tell it from its siblings."""
    telling = ("slots_per_bucket",) if "slots_per_bucket" in m.parameters else ()
    return Setting(m.design, {name: m.parameters[name] for name in telling}).label


def render_contest(contests: Sequence[Contest]) -> Table:
    """One row a contestant, with how many times faster warphash is in brackets."""
    ours = contests[0]
    table = Table(
        title="What people use today, on the CPU", caption="million keys per second (warphash over it)", **_PLAIN
    )
    table.add_column("", no_wrap=True)
    for head in ("build", "find present", "find absent", "verified"):
        table.add_column(head, justify="right")
    for c in contests:
        cells = []
        if c.name == ours.name:
            ours = c  # the next data set begins
        for mine, its in (
            (ours.build_per_s, c.build_per_s),
            (ours.present_per_s, c.present_per_s),
            (ours.absent_per_s, c.absent_per_s),
        ):
            cells.append(f"{its / 1e6:,.1f}" + ("" if c is ours else f" ({mine / its:,.1f} x)"))
        table.add_row(c.name, *cells, "[green]yes[/]" if not c.mismatches else f"[red]{c.mismatches:,} wrong[/]")
    return table
