"""`warphash results`: list or make results files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .limits import listed

__all__ = ["results"]


def results(
    folder: Annotated[Path, typer.Argument(help="Folder of results files.")] = Path("results"),
    stale: Annotated[
        bool, typer.Option("--stale", help="List the files that are not of today's kernels; exit with 1 if any are.")
    ] = False,
    make: Annotated[
        bool,
        typer.Option(
            "--make", help="Make all reference results that are missing or stale; exit with 1 if any are left."
        ),
    ] = False,
    only: Annotated[list[str] | None, typer.Option(help="Make this file alone, such as figures/fig05.")] = None,
    seconds: Annotated[
        float, typer.Option(min=1, help="Time for --make, which goes on when it is called again.")
    ] = 600,
    device: Annotated[str | None, typer.Option(help="cpu or cuda; a GPU if one is usable.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Commands of --make that run at once, and take turns.")] = 1,
) -> None:
    """List stale results files, or make the reference results of a device in a folder such as results/h200."""
    from .. import HashSet
    from ..errors import ParameterError
    from ..lab.report import reference
    from ..lab.report import results as files

    if stale == make:
        raise ParameterError("give --stale to list files, or --make to make them")
    if stale:
        found = list(files.stale(folder))
        for path, reason in found:
            print(f"{path}: {reason}")
        raise typer.Exit(bool(found))
    where = HashSet("uint32", device=device).device.partition(":")[0]
    made = reference.make(folder, reference.pieces(where), seconds, listed(only), print, jobs)
    print(f"{len(made.made)} made, {len(made.failed)} failed, {len(made.left)} left")
    raise typer.Exit(bool(made.failed or made.left))
