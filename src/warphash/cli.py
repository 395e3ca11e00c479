"""The ``warphash`` command."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from .errors import WarphashError

if TYPE_CHECKING:
    from .lab.workloads import Workload

__all__ = ["app", "main"]

try:
    import typer
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
except ImportError as error:  # pragma: no cover - the extras are missing
    sys.exit(f"the command line needs {error.name}: pip install 'warphash[bench]'")

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Hash tables for the GPU and the CPU.")
_console = Console()


def main() -> None:
    """Run the command; an error of ours is one line and exit code 2."""
    try:
        app()
    except WarphashError as error:
        Console(stderr=True).print(f"[red]error:[/] {error}", highlight=False)
        raise SystemExit(2) from None


@app.command()
def bench(
    design: Annotated[list[str] | None, typer.Option(help="Designs to measure; all by default.")] = None,
    n: Annotated[int | None, typer.Option(min=1, help="Random keys; 4 million, or 50 million on a GPU.")] = None,
    load: Annotated[float, typer.Option(min=0.01, max=1.0, help="Load factor, where the design reaches it.")] = 0.8,
    keys: Annotated[str, typer.Option(help="Type of random keys.")] = "uint32",
    values: Annotated[str, typer.Option(help="Type of values, or none for a set.")] = "uint32",
    data: Annotated[
        list[str] | None, typer.Option(help="random, tpch, or FILE.parquet:COLUMN; tpch and random.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda; a GPU if one is usable.")] = None,
    seed: Annotated[int, typer.Option(help="Of keys and hash constants.")] = 1,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads of the CPU engine; all by default.")] = None,
    rivals: Annotated[bool, typer.Option("--rivals", help="Measure what people use today, too (CPU).")] = False,
    json: Annotated[Path, typer.Option(help="Where the results go.")] = Path("results.json"),
    plot: Annotated[Path, typer.Option(help="Where the picture goes.")] = Path("bench.png"),
    quick: Annotated[bool, typer.Option("--quick", help="A tenth of the keys, one repetition, no TPC-H.")] = False,
) -> None:
    """Build and query every design on real and random keys, verify every result, print and draw the rates."""
    from .designs import registry
    from .lab import bench as standard
    from .lab import contest, plots, report, results
    from .lab.runner import Lab
    from .runtime.devices import engine_for

    if threads:
        os.environ["WARPHASH_NUM_THREADS"] = str(threads)
    where = engine_for(device).device.partition(":")[0]
    lab = Lab(where, 1 if quick else 3)
    count = n or (50_000_000 if where == "cuda" else 4_000_000) // (10 if quick else 1)
    value = None if values == "none" else values
    settings = [s for name in design or registry.names() for s in standard.settings_of(name)]
    command = "warphash " + shlex.join(sys.argv[1:])
    measured, contests = [], []
    columns = (TextColumn("{task.description:<48}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=_console, transient=True) as progress:
        task = progress.add_task("making keys", total=None)
        workloads = [
            _workload(name, count, keys, value, seed) for name in data or (["random"] if quick else ["tpch", "random"])
        ]
        progress.update(task, total=len(workloads) * len(settings))

        def note(text: str) -> None:
            progress.update(task, description=text)

        for batch in standard.standard_run(lab, workloads, settings, load, seed=seed, note=note):
            measured += batch
            progress.advance(task)
        if rivals:
            if value is None:
                raise WarphashError("rivals look up values: leave --values none out")
            contests = [c for workload in workloads for c in contest.hold(workload, seed, note)]
    for workload in workloads:
        _console.print(report.render(measured, workload.name))
    if contests:
        _console.print(report.render_contest(contests))
    results.save(json, measured, command, lab.machine, contests=[vars(c) for c in contests])
    plots.draw_bench(measured, plot, lab.machine)
    _console.print(f"results in {json}, picture in {plot}")
    if wrong := sum(m.mismatches for m in [*measured, *contests]):
        Console(stderr=True).print(f"[red]FAILED:[/] {wrong:,} wrong answers")
        raise typer.Exit(1)


@app.command()
def figure(
    name: Annotated[str | None, typer.Argument(help="Such as fig05 or table3; see --list.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="Name the figures.")] = False,
    all_: Annotated[bool, typer.Option("--all", help="Draw them all.")] = False,
    n: Annotated[int | None, typer.Option(min=1, help="Keys; the paper's number on a GPU, 1 million on a CPU.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda; a GPU if one is usable.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for NAME.json and NAME.png.")] = Path(),
    seed: Annotated[int, typer.Option(help="Of keys and hash constants.")] = 1,
) -> None:
    """Measure and draw a figure or table of a paper, with the paper's numbers beside ours."""
    from .lab import figure as figures

    if list_ or not (name or all_):
        for known in figures.names():
            _console.print(f"{known:<8} {figures.load(known).title}", highlight=False)
        return
    wrong = 0
    for chosen in figures.names() if all_ else [str(name)]:
        with _console.status(f"measuring {chosen}") as status:
            made = figures.run(chosen, device, n, out, seed, note=lambda text: status.update(text))
        wrong += made.mismatches
        _console.print(
            f"{chosen}: {made.picture}" + (f" [red]{made.mismatches:,} wrong answers[/]" if made.mismatches else "")
        )
    if wrong:
        raise typer.Exit(1)


@app.command()
def doctor() -> None:
    """Say what runs here, what is missing, and the command that mends it."""
    from .runtime import doctor as examination

    print(examination.report())


def _workload(name: str, n: int, key: str, value: str | None, seed: int) -> Workload:
    import numpy as np

    from .errors import DtypeError
    from .lab import datasets, workloads

    for text in (key, value or "uint32"):
        try:
            np.dtype(text)
        except TypeError:
            raise DtypeError(f"{text!r} is no NumPy type: try uint32 or int64") from None
    if name == "random":
        return workloads.make(n, key, value, seed)
    if name == "tpch":
        line = datasets.tpch_line()
        return workloads.of_keys(
            "TPC-H LINE", line, value and f"uint{64 if np.dtype(value).itemsize == 8 else 32}", seed
        )
    path, _, column = name.rpartition(":")
    if not path:
        raise WarphashError(f"--data is random, tpch or FILE.parquet:COLUMN, got {name!r}")
    return workloads.of_keys(name, datasets.parquet_column(path, column), value, seed)
