"""Format measurements as a table for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table

from ..bench.ceilings import Ceiling
from ..bench.limits import Limit, Limits
from ..bench.runner import Measurement, Setting
from ..bench.sweeps import SWEEPS, SweepPoint
from ..rivals.contest import Contest

__all__ = [
    "LABELS",
    "digits",
    "label",
    "plain_table",
    "render",
    "render_contest",
    "render_limits",
    "render_shares",
    "render_sweep",
]


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


def plain_table(title: str, caption: str) -> Table:
    """A table without columns, of the form that all reports have."""
    return Table(
        title=title,
        caption=caption,
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=0,
        title_justify="left",
        caption_justify="left",
    )


def render(measurements: Sequence[Measurement], data: str) -> Table:
    """A table of at most 80 columns: a row of rates for each design, with the best rate of each operation in bold."""
    mine = [m for m in measurements if m.data == data]
    operations = [name for name in LABELS if any(m.operation == name for m in mine)]
    first = mine[0]
    types = f"{first.key_dtype} to {first.value_dtype or 'nothing'}"
    # The rates of a GPU are in billions, so that a rate needs no more than four characters.
    unit, name_of_unit = (1e9, "Billion") if max(m.rate_per_s for m in mine) >= 1e9 else (1e6, "Million")
    table = plain_table(
        title=f"[bold]{data}[/]: {first.n:,} keys, {types}, {first.device}",
        caption=f"{name_of_unit} keys per second; {_bytes_per_pair(mine)} bytes per pair. For present|absent keys:\n"
        "probes: buckets read per key; of ceiling: share of the rate at which the\n"
        "memory could serve these random reads, measured in this run.",
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
    table = plain_table(
        title=f"[bold]{data}[/]: warphash and other libraries on the CPU, {ours.n:,} keys, {ours.threads_told}",
        caption="Million keys per second (the rate of warphash over this rate).",
    )
    table.add_column("", no_wrap=True)
    for head in ("build", "find all", "find half", "find none", "ok"):
        table.add_column(head, justify="right", no_wrap=True)
    for c in (ours, *rivals):
        cells = []
        for what, mine in ours.rates.items():
            its = c.rates.get(what)
            ratio = mine / its if its else 0.0
            times = "" if its is None or c is ours else f" ({ratio:,.{int(ratio < 9.95)}f} x)"
            cells.append("in find" if its is None else f"{digits(its / 1e6)}{times}")
        table.add_row(c.name, *cells, _verdict(c.mismatches))
    return table


def render_limits(limits: Limits, ceilings: Sequence[Ceiling], machine: str) -> Table:
    """What the memory and a launch allow: a row for each size of table and of bucket that was measured."""
    copies = ", ".join(f"{rate / 1e9:,.0f} GB/s of {_size(nbytes)}" for nbytes, rate in limits.streams.items())
    table = plain_table(
        title=f"[bold]Limits[/] of {machine}",
        caption=f"Million accesses per second at random places. Lookups also read a key and write an answer. "
        f"A launch: {1e6 * limits.launch_s:.2f} us. Copies, read and written: {copies}.",
    )
    for head in ("bucket", "table", "reads", "reads and\nswaps", "reads and\nwrites", "lookups\n(key bytes)"):
        table.add_column(head, justify="right", no_wrap=True)
    for ceiling in ceilings:
        mine = [a for a in limits.accesses if a.bucket_bytes == ceiling.bucket_bytes]
        mine = [a for a in mine if a.region_bytes == ceiling.region_bytes]
        table.add_row(
            f"{ceiling.bucket_bytes} B",
            _size(ceiling.region_bytes),
            f"{ceiling.reads_per_s / 1e6:,.0f}",
            f"{ceiling.swaps_per_s / 1e6:,.0f}",
            f"{max(a.writes_per_s for a in mine) / 1e6:,.0f}" if mine else "",
            ", ".join(f"{a.lookups_per_s / 1e6:,.0f} ({a.key_bytes})" for a in mine),
        )
    return table


def render_shares(measurements: Sequence[Measurement], limits: Sequence[Limit | None], data: str) -> Table:
    """Each rate beside its limits: a row for each design and operation."""
    mine = [(m, limit) for m, limit in zip(measurements, limits, strict=True) if m.data == data]
    table, unit = _table_of_shares(f"[bold]{data}[/]: each rate beside its limits", "", [m for m, _ in mine])
    before = ""
    for m, limit in mine:
        if label(m) != before:
            before = label(m)
            table.add_row(f"[bold]{before.replace('_', ' ')}[/]")
        table.add_row(m.operation, "", *_shares(m, limit, unit))
    return table


def render_sweep(name: str, points: Sequence[SweepPoint]) -> Table:
    """Each point of a sweep beside its limits: a row for each design, operation and point."""
    ordered = sorted(points, key=lambda point: (label(point.measurement), point.panel))
    title = f"[bold]{SWEEPS[name].title}[/]: {SWEEPS[name].axis}"
    table, unit = _table_of_shares(title, name, [point.measurement for point in points])
    design = panel = ""
    for point in ordered:
        if label(point.measurement) != design:
            design, panel = label(point.measurement), ""
            table.add_row(f"[bold]{design.replace('_', ' ')}[/]")
        x = f"{point.x:,.0f}" if point.x >= 1000 else f"{point.x:.3g}"
        table.add_row("" if point.panel == panel else point.panel, x, *_shares(point.measurement, point.limit, unit))
        panel = point.panel
    return table


def _table_of_shares(title: str, swept: str, measurements: Sequence[Measurement]) -> tuple[Table, float]:
    """A table without rows, and the unit of its rates."""
    unit, name_of_unit = (1e9, "Billion") if max(m.rate_per_s for m in measurements) >= 1e9 else (1e6, "Million")
    table = plain_table(
        title=title,
        caption=f"{name_of_unit} keys per second. Lines: lines of 64 bytes that a key touches. "
        "Random limit: each key goes to its places by itself. Stream limit: batch "
        "and table are moved once, in order. Of it: the rate over the limit.",
    )
    table.add_column("design", no_wrap=True)
    for head in (swept, "rate", "lines", "random\nlimit", "of\nit", "stream\nlimit", "of\nit", "ok"):
        table.add_column(head, justify="right", no_wrap=True)
    return table, unit


def _shares(m: Measurement, limit: Limit | None, unit: float) -> list[str]:
    rate = digits(m.rate_per_s / unit)
    if limit is None:
        return [rate, "", "", "", "", "", _verdict(m.mismatches)]
    return [
        rate,
        f"{limit.lines_per_key:.2f}",
        digits(limit.random_per_s / unit),
        f"{limit.random_share:.2f}",
        digits(limit.stream_per_s / unit),
        f"{limit.stream_share:.2f}",
        _verdict(m.mismatches),
    ]


def _size(nbytes: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if nbytes >= unit:
            return f"{nbytes / unit:.3g} {name}"
    return f"{nbytes} B"


def _rate(m: Measurement | None, best: float, unit: float) -> str:
    if m is None:
        return ""
    if m.mismatches:
        return "[bold red]FAIL[/]"
    text = digits(m.rate_per_s / unit)
    return f"[bold]{text}[/]" if m.rate_per_s == best else text


def digits(rate: float) -> str:
    """A rate in 4 characters, if it is below 10,000."""
    return f"{rate:.{0 if rate >= 99.95 else 1 if rate >= 9.995 else 2}f}"


def _bytes_per_pair(measurements: Sequence[Measurement]) -> str:
    found = [m.bytes_per_pair for m in measurements]
    least, most = f"{min(found):.1f}", f"{max(found):.1f}"
    return least if least == most else f"{least} to {most}"


def _verdict(wrong: int) -> str:
    return "[green]yes[/]" if not wrong else "[bold red]NO[/]"
