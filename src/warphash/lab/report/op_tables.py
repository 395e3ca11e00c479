"""Print the rates of operations in a terminal: a table for each operation, a row for each input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table

from ..ops import OPS
from ..ops.run import OURS, OpRate
from .tables import digits, plain_table

__all__ = ["best_of", "group_title", "render_ops", "thousands"]


def render_ops(rates: Sequence[OpRate]) -> Iterator[Table]:
    """Tables of at most 80 columns. The last column is our best rate over the best rate of the rivals."""
    for op in dict.fromkeys(rate.op for rate in rates):
        mine = [rate for rate in rates if rate.op == op]
        contestants = list(dict.fromkeys(rate.contestant for rate in mine))
        most = max(rate.rows for rate in mine)
        threads = mine[0].threads
        on = mine[0].device if threads is None else f"{threads} thread{'s' if threads > 1 else ''}"
        table = plain_table(
            f"[bold]{OPS[op].title}[/] ({op}): {most:,} rows, {mine[0].key_dtype}, {on}",
            "Million rows per second, with the building of every table. Over best: our rate over the rivals' best.",
        )
        table.add_column("distinct", no_wrap=True)
        for name in contestants:
            head = name.replace(f"{OURS} ", "ours\n")
            table.add_column(head, justify="right", no_wrap=True)
        table.add_column("over\nbest", justify="right", no_wrap=True)
        for title in dict.fromkeys(map(group_title, mine)):
            table.add_row(f"[bold]{title}[/]")
            group = [rate for rate in mine if group_title(rate) == title]
            for distinct in dict.fromkeys(rate.distinct for rate in group):
                table.add_row(
                    f"  {thousands(distinct)}", *_cells([r for r in group if r.distinct == distinct], contestants)
                )
        yield table


def group_title(rate: OpRate) -> str:
    """What the inputs of a group of rates share: ``"dense, 5 % hits"``, or the rows of a tiny call."""
    hits = "" if rate.hit_share is None else f", {100 * rate.hit_share:g} % hits"
    return f"{rate.rows} rows" if rate.rows < 1000 else f"{rate.spread}{hits}"


def best_of(rates: Sequence[OpRate]) -> tuple[float, float]:
    """Our best rate and the best rate of a rival, in rows per second; 0 without a rate whose answers are right."""
    right = [rate for rate in rates if not rate.mismatches]
    ours, rivals = ([r.rows_per_s for r in right if r.is_ours == wanted] for wanted in (True, False))
    return max(ours, default=0.0), max(rivals, default=0.0)


def thousands(count: int) -> str:
    """A count in few characters: ``"100 k"``, ``"10 M"``."""
    for unit, name in ((1_000_000, " M"), (1_000, " k")):
        if count >= unit:
            return f"{count / unit:.3g}{name}"
    return str(count)


def _cells(rates: Sequence[OpRate], contestants: Sequence[str]) -> Iterator[str]:
    of_each = {rate.contestant: rate for rate in rates}
    ours, rival = best_of(rates)
    for name in contestants:
        rate = of_each.get(name)
        if rate is None or rate.mismatches:
            yield "" if rate is None else "[bold red]FAIL[/]"
        else:
            text = digits(rate.rows_per_s / 1e6)
            yield f"[bold]{text}[/]" if rate.rows_per_s == max(ours, rival) else text
    yield digits(ours / rival) if ours and rival else ""
