"""The commands of ``warphash`` that need optional packages. ``__main__.py`` has those that need none.

A command is a module of its own; what they share is in ``shell.py``. Modules import NumPy and what needs it inside of
functions, so that an error can name a package that is missing, and ``--help`` comes at once.
"""

from __future__ import annotations

from . import shell  # isort: skip  # reports a missing package before a command imports it

from collections.abc import Callable
from typing import Annotated

import typer

from .. import __version__
from . import bench, compile, count, dedupe, doctor, figure, group, join, results, tune, unique

__all__ = ["app", "main"]

app = typer.Typer(
    cls=shell.Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Hash tables, on the GPU and the CPU; and what they do for CSV and Parquet files.",
)


def main() -> None:
    """Run the command."""
    shell.run(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"warphash {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


_PANELS: dict[str, tuple[Callable[..., None], ...]] = {
    "Data files": (unique.unique, count.count, dedupe.dedupe, join.join, group.group),
    "Laboratory": (bench.bench, figure.figure, results.results),
    "Kernels and this machine": (compile.compile, tune.tune, doctor.doctor),
}
"""Commands in the order of ``--help``."""

for _panel, _commands in _PANELS.items():
    for _command in _commands:
        app.command(cls=shell.Command, rich_help_panel=_panel)(_command)
