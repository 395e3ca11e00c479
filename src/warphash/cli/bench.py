"""`warphash bench`: measure tables and verbs."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ..designs import registry
from .limits import MOST_SEED, keys_of, listed
from .shell import console, exit_if_wrong

if TYPE_CHECKING:
    from ..lab.bench.limits import Limits
    from ..lab.bench.runner import Lab, Setting
    from ..lab.bench.sweeps import SweepConfig
    from ..lab.ops.base import OpsConfig
    from ..lab.report.kept_files import Files

__all__ = ["bench"]

_LEAST_LOAD = 0.01
_OPS_ROWS = 10_000_000
_NOT_OF_OPS = ("design", "load", "values", "data", "rivals", "limits", "sweep")


def bench(
    context: typer.Context,
    design: Annotated[
        list[str] | None, typer.Option(help="Designs to measure; all, and in a sweep that of auto.")
    ] = None,
    n: Annotated[
        int | None,
        typer.Option(
            parser=keys_of,
            metavar="N",
            help="Most keys; default: 1 million random ones on a CPU and 50 million on a GPU, a whole file (3 million "
            "of tpch on a CPU), what the memory takes in a sweep of sizes, and 10 million with --ops.",
        ),
    ] = None,
    load: Annotated[float, typer.Option(help="Load factor in (0, 1]; a design that cannot reach it takes less.")] = 0.8,
    keys: Annotated[
        str | None, typer.Option(help="Type of random keys; uint32 by default, and int64 with --ops.")
    ] = None,
    values: Annotated[str, typer.Option(help="Type of values, or none for a set.")] = "uint32",
    data: Annotated[
        list[str] | None,
        typer.Option(help="random, normal, tpch, tw, re, com or FILE.parquet:COLUMN; tpch and random by default."),
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda; a GPU if one is usable.")] = None,
    seed: Annotated[int, typer.Option(min=0, max=MOST_SEED, help="Seed of keys and hash constants.")] = 1,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads of the CPU engine; all by default.")] = None,
    rivals: Annotated[bool, typer.Option("--rivals", help="Also measure other libraries on the CPU.")] = False,
    limits: Annotated[
        bool, typer.Option("--limits", help="Also print what the memory allows, and each rate's share of it.")
    ] = False,
    sweep: Annotated[str | None, typer.Option(help="Vary one thing: size, load, hits, skew or batch.")] = None,
    ops: Annotated[
        bool, typer.Option("--ops", help="Measure unique, isin and other verbs beside the libraries that have them.")
    ] = False,
    op: Annotated[list[str] | None, typer.Option(help="Of --ops, this operation alone, such as isin.")] = None,
    jobs: Annotated[
        bool, typer.Option("--jobs", help="Measure jobs of users, in the ways of several libraries, on the CPU.")
    ] = False,
    job: Annotated[list[str] | None, typer.Option(help="Of --jobs, this job alone, such as dedupe.")] = None,
    json: Annotated[Path, typer.Option(help="File for the results; - is standard output.")] = Path("results.json"),
    plot: Annotated[Path, typer.Option(help="File for the picture.")] = Path("bench.png"),
    quick: Annotated[bool, typer.Option("--quick", help="Few random keys, one repetition: some seconds.")] = False,
) -> None:
    """Build and query every design on real and on random keys. Verify, print and draw the results.

    With --sweep, measure tables of random keys while one thing varies. With --ops, measure the relational verbs beside
    other libraries, and with --jobs whole jobs. Ctrl-C keeps what was measured then.
    """
    for variable in ("WARPHASH_NUM_THREADS", "POLARS_MAX_THREADS", "OMP_NUM_THREADS") if threads else ():
        os.environ[variable] = str(threads)

    from .. import HashSet, atomic_file
    from ..errors import ParameterError
    from ..lab.bench import standard, sweeps, turns
    from ..lab.bench.limits import Limit, Limits
    from ..lab.bench.runner import Lab, Measurement
    from ..lab.ops.base import OpsConfig
    from ..lab.report import plots, results, tables
    from ..lab.report.kept_files import Files
    from ..lab.rivals import contest

    value, key = None if values == "none" else values, keys or "uint32"
    if ops or op:
        _check_options(context, "--ops", _NOT_OF_OPS)
    if jobs or job:
        _check_options(context, "--jobs", (*_NOT_OF_OPS, "ops", "op", "keys"))
        if device not in (None, "cpu"):
            raise ParameterError(f"--jobs are done on the CPU, got --device {device}: leave it out")
    if not 0 < load <= 1:
        raise ParameterError(f"--load must be in (0, 1], got {load:g}")
    if load < _LEAST_LOAD:
        raise ParameterError(f"--load must be at least {_LEAST_LOAD}, got {load:g}")
    if sweep and (data or rivals):
        raise ParameterError("a sweep takes random keys and tables of warphash: leave --data and --rivals out")
    if rivals and value is None:
        raise ParameterError("rivals look values up: leave --values none out")
    json = context.with_resource(_file_for(json))
    atomic_file.check(json)
    plots.check_picture(plot)
    if json.resolve() == plot.resolve():
        raise ParameterError(f"--json and --plot are both {json}: give two files")
    files = Files(json, plot, "warphash " + shlex.join(sys.argv[1:]))
    if ops or op:
        config_of_ops = OpsConfig(n or (200_000 if quick else _OPS_ROWS), keys or "int64", seed)
        _measure_ops(listed(op), config_of_ops, device, files, quick)
        return
    if jobs or job:
        _measure_jobs(job or (), n or (20_000 if quick else None), seed, files, quick)
        return
    where = HashSet("uint32", capacity=1, device=device).device
    lab = Lab(where, repetitions=1 if quick else 5, with_ceilings=not sweep)
    known = Limits(lab.memory)
    if sweep:
        config = sweeps.config_for(sweep, lab.memory, n or (200_000 if quick else None), load, key, value, seed)
        chosen = [s for name in listed(design) for s in standard.settings_of(name, load)]
        chosen = chosen or [sweeps.automatic(config, where)]
        _measure_sweep(sweep, lab, config, chosen, known, files)
        if limits:
            console.print(tables.render_limits(known, lab.ceilings, lab.machine))
        return
    # These limits keep the whole run well under a minute on two processors.
    most = {"random": 1_000_000, "tpch": 3_000_000} if where == "cpu" else {"random": 50_000_000}
    settings = [s for name in listed(design) or registry.names() for s in standard.settings_of(name, load)]
    measured: list[Measurement] = []
    shares: list[Limit | None] = []
    contests: list[contest.Contest] = []
    with _progress() as progress:
        task = progress.add_task("making keys", total=None)
        with turns.away():
            workloads = [
                standard.workload_of(source, n or (200_000 if quick else most.get(source)), key, value, seed)
                for source in data or (["random"] if quick else ["tpch", "random"])
            ]
            contested = contest.workloads_of(workloads, seed) if rivals else []
        progress.update(task, total=len(workloads) * len(settings))
        with results.recorded(lab) as run:
            for batch in standard.standard_run(
                lab, workloads, settings, load, seed=seed, note=lambda text: progress.update(task, description=text)
            ):
                measured += batch
                shares += map(known.of, batch if limits else ())
                progress.advance(task)
            for workload in contested:
                contests += contest.hold(workload, load, lambda text: progress.update(task, description=text))
    # The picture comes first, so where the new data file is, the new picture is, too.
    with turns.away():
        plots.draw_bench(measured, plot, lab.machine, contests, results.made_by(files.command))
    left_out = contest.not_measured(max(len(w.keys) for w in contested)) if rivals else {}
    held: dict[str, Any] = {"contests": [vars(c) for c in contests], "not_measured": left_out}
    if limits:
        held |= {"limits": known.content(), "shares": [share and vars(share) for share in shares]}
    results.save(json, measured, files.command, lab.machine, **run.head(), **held)
    for workload in workloads:
        console.print(tables.render(measured, workload.name))
        if limits:
            console.print(tables.render_shares(measured, shares, workload.name))
    if limits:
        console.print(tables.render_limits(known, lab.ceilings, lab.machine))
    for workload in contested:
        console.print(tables.render_contest(contests, workload.name))
    _print_left_out(left_out)
    _print_paths(json, plot)
    exit_if_wrong(sum(m.mismatches for m in measured) + sum(c.mismatches for c in contests))


def _measure_sweep(
    name: str, lab: Lab, config: SweepConfig, settings: list[Setting], limits: Limits, files: Files
) -> None:
    """Measure a sweep, and print its points."""
    from ..lab.report import tables
    from ..lab.report.sweep_files import measure_to_files

    with _noted("making keys") as note:
        points = measure_to_files(name, lab, config, settings, limits, files, note)
    console.print(tables.render_sweep(name, points))
    _print_paths(files.json, files.plot)
    exit_if_wrong(sum(point.measurement.mismatches for point in points))


def _check_options(context: typer.Context, option: str, others: Sequence[str]) -> None:
    """Raise if another option was given that this one does not take."""
    from ..errors import ParameterError

    for name in others:
        if getattr(context.get_parameter_source(name), "name", "DEFAULT") != "DEFAULT":
            raise ParameterError(f"{option} measures verbs beside all installed libraries: leave --{name} out")


def _measure_ops(names: Sequence[str], config: OpsConfig, device: str | None, files: Files, quick: bool) -> None:
    """Measure operations beside other libraries, and print their rates."""
    from .. import HashSet
    from ..lab.bench.runner import Lab
    from ..lab.bench.standard import check_type
    from ..lab.ops import chosen
    from ..lab.report.op_files import measure_to_files
    from ..lab.report.op_tables import render_ops

    check_type(config.key)
    ops = chosen(names)
    where = HashSet("uint32", capacity=1, device=device).device
    with _noted("making keys") as note:
        lab = Lab(where, repetitions=1 if quick else 5, warms_up=True)
        rates, not_measured = measure_to_files(lab, ops, config, files, note)
    for table in render_ops(rates):
        console.print(table)
    _print_left_out(not_measured)
    _print_paths(files.json, files.plot)
    exit_if_wrong(sum(rate.mismatches for rate in rates))


def _measure_jobs(names: Sequence[str], rows: int | None, seed: int, files: Files, quick: bool) -> None:
    """Measure jobs beside other libraries, and print their times."""
    from ..lab.bench.runner import Lab
    from ..lab.jobs import chosen
    from ..lab.report.job_files import measure_jobs_to_files
    from ..lab.report.job_tables import render_jobs

    jobs = chosen(names)
    with _noted("making rows") as note:
        lab = Lab("cpu", repetitions=1 if quick else 5)
        times, not_measured = measure_jobs_to_files(lab, jobs, rows, seed, files, note)
    console.print(render_jobs(times))
    _print_left_out(not_measured)
    _print_paths(files.json, files.plot)
    exit_if_wrong(sum(time.mismatches for time in times))


@contextlib.contextmanager
def _file_for(json: Path) -> Iterator[Path]:
    """The file for the results. Those for standard output are kept in a temporary one, and tables go to standard error.

    So standard output has what was measured then also after Ctrl-C.
    """
    if str(json) != "-":
        yield json
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "results.json")
        console.stderr = True
        try:
            yield file
        finally:
            console.stderr = False
            if file.exists():
                sys.stdout.write(file.read_text(encoding="utf-8"))
                sys.stdout.flush()


def _print_left_out(reasons: Mapping[str, str]) -> None:
    for name, why in reasons.items():
        console.print(f"Not measured: {name}, {why}.", highlight=False)


def _print_paths(json: Path, plot: Path) -> None:
    where = "standard output" if console.stderr else json
    console.print(f"Results in {where}, picture in {plot}.", highlight=False)


@contextlib.contextmanager
def _noted(first: str) -> Iterator[Callable[[str], None]]:
    """Show what is measured, from a first text on: the function that is given shows another one."""
    with _progress() as progress:
        task = progress.add_task(first, total=None)
        yield lambda text: progress.update(task, description=text)


def _progress() -> Progress:
    columns = (TextColumn("{task.description:<44}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True)
