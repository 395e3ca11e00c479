"""`warphash figure`: measure and draw figures of the papers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .limits import MOST_SEED, keys_of
from .shell import console, exit_if_wrong

__all__ = ["figure"]


def figure(
    name: Annotated[str | None, typer.Argument(help="Such as fig05, table3 or slab4: see --list.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the figures.")] = False,
    all_: Annotated[bool, typer.Option("--all", help="Draw all figures.")] = False,
    n: Annotated[
        int | None,
        typer.Option(
            parser=keys_of, metavar="N", help="Most keys; default: as the paper on a GPU, 1 million on a CPU."
        ),
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda; a GPU if one is usable.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for NAME.json and NAME.png.")] = Path(),
    seed: Annotated[int, typer.Option(min=0, max=MOST_SEED, help="Seed of keys and hash constants.")] = 1,
) -> None:
    """Measure and draw a figure or table of a paper, with the paper's numbers beside ours."""
    from .. import HashSet
    from ..lab.figures import catalogue
    from ..lab.report.figure_files import check_targets, run
    from ..lab.report.figure_tables import render_figure

    if list_ or not (name or all_):
        paper = ""
        for known in catalogue.names():
            data = catalogue.load(known)
            if data.paper != paper:
                console.print(f"[bold]{data.paper}[/]", highlight=False)
            paper = data.paper
            console.print(f"  {known:<11}{data.title}", highlight=False)
        return
    names = catalogue.names() if all_ else [str(name)]
    for chosen in names:
        catalogue.load(chosen)
    where = HashSet("uint32", device=device).device.partition(":")[0]
    for chosen in names:
        check_targets(chosen, out)
    wrong = 0
    for chosen in names:
        with console.status(chosen) as status:
            made = run(chosen, where, n, out, seed, lambda text, of=chosen: status.update(f"{of}: {text}"))  # type: ignore[misc]
        console.print(f"{chosen}: {made.picture}", highlight=False)
        for table in render_figure(catalogue.load(chosen), made.points):
            console.print(table)
        wrong += made.mismatches
    exit_if_wrong(wrong)
