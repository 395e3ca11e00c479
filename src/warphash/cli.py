"""The commands of ``warphash`` that need optional packages. ``__main__.py`` has those that need none."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from . import __version__
from .designs import registry
from .errors import WarphashError

if TYPE_CHECKING:
    from .lab.bench.limits import Limits
    from .lab.bench.runner import Lab, Setting
    from .lab.bench.sweeps import SweepConfig
    from .lab.ops.base import OpsConfig
    from .lab.report.kept_files import Files

__all__ = ["app", "main"]

try:
    import typer
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
except ImportError as error:
    print(
        f"error: the command line needs {(error.name or '').partition('.')[0]}: pip install 'warphash[bench]'",
        file=sys.stderr,
    )
    raise SystemExit(2) from None

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Hash tables, on the GPU and the CPU.",
)
_console = Console()
_errors = Console(stderr=True, highlight=False, soft_wrap=True)


_UsageError: Any = typer.BadParameter.__mro__[1]
"""click's ``UsageError``. Newer versions of typer carry their own copy of click, so the class is taken from typer."""

_PARAMETERS = ", ".join(registry.usual_parameters())
_LEAST_LOAD = 0.01
_OPS_ROWS = 10_000_000
_MOST_KEYS = 1 << 40
_MOST_SEED = (1 << 32) - 1


def main() -> None:
    """Run the command. An error prints one line and exits with code 2."""
    try:
        code = app(sys.argv[1:] or ["--help"], standalone_mode=False)
    except typer.Abort:
        raise SystemExit(130) from None
    except _UsageError as error:
        _fail(error.format_message())
    except ImportError as error:
        if (error.name or "warphash").startswith("warphash"):
            raise
        _fail(f"this needs {(error.name or '').partition('.')[0]}: pip install 'warphash[bench]'")
    except (WarphashError, OSError, MemoryError) as error:
        _fail(str(error) or "out of memory: take fewer keys with --n")
    else:
        raise SystemExit(code)


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


@app.command()
def bench(
    context: typer.Context,
    design: Annotated[
        list[str] | None, typer.Option(help="Designs to measure; all, and in a sweep that of auto.")
    ] = None,
    n: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=_MOST_KEYS,
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
    seed: Annotated[int, typer.Option(min=0, max=_MOST_SEED, help="Seed of keys and hash constants.")] = 1,
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
    json: Annotated[Path, typer.Option(help="File for the results.")] = Path("results.json"),
    plot: Annotated[Path, typer.Option(help="File for the picture.")] = Path("bench.png"),
    quick: Annotated[bool, typer.Option("--quick", help="Few random keys, one repetition: some seconds.")] = False,
) -> None:
    """Build and query every design on real and on random keys. Verify, print and draw the results.

    With --sweep, measure tables of random keys while one thing varies. With --ops, measure the relational verbs beside
    other libraries. Ctrl-C keeps what was measured then.
    """
    for variable in ("WARPHASH_NUM_THREADS", "POLARS_MAX_THREADS", "OMP_NUM_THREADS") if threads else ():
        os.environ[variable] = str(threads)

    from . import HashSet, atomic_file
    from .errors import ParameterError
    from .lab.bench import standard, sweeps, turns
    from .lab.bench.limits import Limit, Limits
    from .lab.bench.runner import Lab, Measurement
    from .lab.ops.base import OpsConfig
    from .lab.report import plots, results, tables
    from .lab.report.kept_files import Files
    from .lab.rivals import contest

    value, key = None if values == "none" else values, keys or "uint32"
    if ops or op:
        _check_ops(context)
    if not 0 < load <= 1:
        raise ParameterError(f"--load must be in (0, 1], got {load:g}")
    if load < _LEAST_LOAD:
        raise ParameterError(f"--load must be at least {_LEAST_LOAD}, got {load:g}")
    if sweep and (data or rivals):
        raise ParameterError("a sweep takes random keys and tables of warphash: leave --data and --rivals out")
    if rivals and value is None:
        raise ParameterError("rivals look values up: leave --values none out")
    atomic_file.check(json)
    plots.check_picture(plot)
    if json.resolve() == plot.resolve():
        raise ParameterError(f"--json and --plot are both {json}: give two files")
    files = Files(json, plot, "warphash " + shlex.join(sys.argv[1:]))
    if ops or op:
        config_of_ops = OpsConfig(n or (200_000 if quick else _OPS_ROWS), keys or "int64", seed)
        _measure_ops(op or (), config_of_ops, device, files, quick)
        return
    where = HashSet("uint32", capacity=1, device=device).device
    lab = Lab(where, repetitions=1 if quick else 5, with_ceilings=not sweep)
    known = Limits(lab.memory)
    if sweep:
        config = sweeps.config_for(sweep, lab.memory, n or (200_000 if quick else None), load, key, value, seed)
        chosen = [s for name in design or () for s in standard.settings_of(name, load)]
        chosen = chosen or [sweeps.automatic(config, where)]
        _measure_sweep(sweep, lab, config, chosen, known, files)
        if limits:
            _console.print(tables.render_limits(known, lab.ceilings, lab.machine))
        return
    # These limits keep the whole run well under a minute on two processors.
    most = {"random": 1_000_000, "tpch": 3_000_000} if where == "cpu" else {"random": 50_000_000}
    settings = [s for name in design or registry.names() for s in standard.settings_of(name, load)]
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
        _console.print(tables.render(measured, workload.name))
        if limits:
            _console.print(tables.render_shares(measured, shares, workload.name))
    if limits:
        _console.print(tables.render_limits(known, lab.ceilings, lab.machine))
    for workload in contested:
        _console.print(tables.render_contest(contests, workload.name))
    for name, why in left_out.items():
        _console.print(f"Not measured: {name}, {why}.", highlight=False)
    _console.print(f"Results in {json}, picture in {plot}.", highlight=False)
    _exit_if_wrong(sum(m.mismatches for m in measured) + sum(c.mismatches for c in contests))


def _measure_sweep(
    name: str, lab: Lab, config: SweepConfig, settings: list[Setting], limits: Limits, files: Files
) -> None:
    """Measure a sweep, and print its points."""
    from .lab.report import tables
    from .lab.report.sweep_files import measure_to_files

    with _progress() as progress:
        task = progress.add_task("making keys", total=None)

        def note(text: str) -> None:
            progress.update(task, description=text)

        points = measure_to_files(name, lab, config, settings, limits, files, note)
    _console.print(tables.render_sweep(name, points))
    _console.print(f"Results in {files.json}, picture in {files.plot}.", highlight=False)
    _exit_if_wrong(sum(point.measurement.mismatches for point in points))


def _check_ops(context: typer.Context) -> None:
    """Raise if an option was given that --ops does not take."""
    from .errors import ParameterError

    for name in ("design", "load", "values", "data", "rivals", "limits", "sweep"):
        if getattr(context.get_parameter_source(name), "name", "DEFAULT") != "DEFAULT":
            raise ParameterError(f"--ops measures verbs beside all installed libraries: leave --{name} out")


def _measure_ops(names: Sequence[str], config: OpsConfig, device: str | None, files: Files, quick: bool) -> None:
    """Measure operations beside other libraries, and print their rates."""
    from . import HashSet
    from .lab.bench.runner import Lab
    from .lab.bench.standard import check_type
    from .lab.ops import chosen
    from .lab.report.op_files import measure_to_files
    from .lab.report.op_tables import render_ops

    check_type(config.key)
    ops = chosen(names)
    where = HashSet("uint32", capacity=1, device=device).device
    with _progress() as progress:
        task = progress.add_task("making keys", total=None)

        def note(text: str) -> None:
            progress.update(task, description=text)

        lab = Lab(where, repetitions=1 if quick else 5, warms_up=True)
        rates, not_measured = measure_to_files(lab, ops, config, files, note)
    for table in render_ops(rates):
        _console.print(table)
    for name, why in not_measured.items():
        _console.print(f"Not measured: {name}, {why}.", highlight=False)
    _console.print(f"Results in {files.json}, picture in {files.plot}.", highlight=False)
    _exit_if_wrong(sum(rate.mismatches for rate in rates))


@app.command()
def figure(
    name: Annotated[str | None, typer.Argument(help="Such as fig05, table3 or slab4: see --list.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the figures.")] = False,
    all_: Annotated[bool, typer.Option("--all", help="Draw all figures.")] = False,
    n: Annotated[
        int | None,
        typer.Option(min=1, max=_MOST_KEYS, help="Most keys; default: as the paper on a GPU, 1 million on a CPU."),
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda; a GPU if one is usable.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for NAME.json and NAME.png.")] = Path(),
    seed: Annotated[int, typer.Option(min=0, max=_MOST_SEED, help="Seed of keys and hash constants.")] = 1,
) -> None:
    """Measure and draw a figure or table of a paper, with the paper's numbers beside ours."""
    from . import HashSet
    from .lab.figures import catalogue
    from .lab.report.figure_files import check_targets, run
    from .lab.report.figure_tables import render_figure

    if list_ or not (name or all_):
        paper = ""
        for known in catalogue.names():
            data = catalogue.load(known)
            if data.paper != paper:
                _console.print(f"[bold]{data.paper}[/]", highlight=False)
            paper = data.paper
            _console.print(f"  {known:<11}{data.title}", highlight=False)
        return
    names = catalogue.names() if all_ else [str(name)]
    for chosen in names:
        catalogue.load(chosen)
    where = HashSet("uint32", device=device).device.partition(":")[0]
    for chosen in names:
        check_targets(chosen, out)
    wrong = 0
    for chosen in names:
        with _console.status(chosen) as status:
            made = run(chosen, where, n, out, seed, lambda text, of=chosen: status.update(f"{of}: {text}"))  # type: ignore[misc]
        _console.print(f"{chosen}: {made.picture}", highlight=False)
        for table in render_figure(catalogue.load(chosen), made.points):
            _console.print(table)
        wrong += made.mismatches
    _exit_if_wrong(wrong)


@app.command()
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
    from . import HashSet
    from .errors import ParameterError
    from .lab.report import reference
    from .lab.report import results as files

    if stale == make:
        raise ParameterError("give --stale to list files, or --make to make them")
    if stale:
        found = list(files.stale(folder))
        for path, reason in found:
            print(f"{path}: {reason}")
        raise typer.Exit(bool(found))
    where = HashSet("uint32", device=device).device.partition(":")[0]
    made = reference.make(folder, reference.pieces(where), seconds, only or (), print, jobs)
    print(f"{len(made.made)} made, {len(made.failed)} failed, {len(made.left)} left")
    raise typer.Exit(bool(made.failed or made.left))


@app.command()
def compile(
    keys: Annotated[str, typer.Option(help="Type of keys, as NumPy names it.")],
    values: Annotated[str, typer.Option(help="Type of values; none for a set.")] = "none",
    design: Annotated[list[str] | None, typer.Option(help="A design, or several; auto by default.")] = None,
    arch: Annotated[
        list[str] | None, typer.Option(help="An architecture such as sm_90, or several; that of the GPU by default.")
    ] = None,
    evict: Annotated[str | None, typer.Option(help="For tables with max_size: who leaves.")] = None,
    hash: Annotated[str, typer.Option(help="mixer or universal.")] = "mixer",
    parameter: Annotated[
        list[str] | None,
        typer.Option(help=f"A parameter, such as slots_per_bucket=8. The usual ones are {_PARAMETERS}."),
    ] = None,
) -> None:
    """Compile the kernels of tables ahead, into the folder of the compile cache. Needs no GPU if --arch is given."""
    from .table.ahead import compile_ahead, parsed

    given = dict(parsed(text) for text in parameter or ())
    types = keys, None if values == "none" else values
    for name in design or ["auto"]:
        for code in compile_ahead(*types, design=name, arch=arch, evict=evict, hash=hash, parameters=given):
            print(f"{code.arch} {code.program}: {'compiled' if code.compiled else 'was there'}")


@app.command()
def tune(
    keys: Annotated[str, typer.Option(help="Type of keys.")] = "uint64",
    values: Annotated[str, typer.Option(help="Type of values; none for a set.")] = "uint64",
    ticket_bits: Annotated[int, typer.Option(help="Bits of a ticket, of design stadium: 1, 2, 4 or 8.")] = 8,
    n: Annotated[int, typer.Option(min=1 << 16, max=1 << 30, help="Pairs in the tables that are measured.")] = 1 << 26,
    design: Annotated[str, typer.Option(help="stadium, or a design whose large lookups can go by parts.")] = "stadium",
    device: Annotated[str, typer.Option(help="cuda or cuda:1.")] = "cuda",
) -> None:
    """Measure and store what is faster on this GPU: when lanes of stadium collaborate, when lookups go by parts."""
    from . import HashMap, HashSet
    from .errors import ParameterError
    from .lab.bench import turns
    from .storage.batch_order import calibrate, lookups
    from .storage.tickets import threshold

    stadium = design == "stadium"
    options: dict[str, Any] = {"ticket_bits": ticket_bits} if stadium else {}
    options |= {"design": design, "device": device, "capacity": 1}
    table = HashSet(keys, **options) if values == "none" else HashMap(keys, values, **options)
    store: Any = table._parts.guarded.storage.store
    if not stadium and (store.design.layout.composed or not lookups.has_parts(store.spec)):
        raise ParameterError(
            f"lookups of {table.design} with these types have one way: name another design, or keys of 4 or 8 bytes "
            f"and values as wide"
        )
    if not table.device.startswith("cuda"):
        what = "lanes of a GPU can collaborate" if stadium else "lookups of a GPU have two ways"
        raise ParameterError(f"only the {what}, got --device {device}: give cuda")
    turns.take(store.engine.synchronize)
    if stadium:
        least = threshold.calibrate(store.state.array, n)
        said = "at no load factor" if least == threshold.NEVER else f"from load factor {least:.2f} on"
        said = f"lanes collaborate {said}"
    else:
        number = calibrate.calibrate(store, n)
        said = "in no table" if number == calibrate.NEVER else f"in tables of {number:.0f} parts and more"
        said = f"large lookups go by parts {said}"
    _console.print(f"{table.device}, {table.design}, {keys} to {values}: {said}", highlight=False)


@app.command()
def doctor() -> None:
    """Report what runs here, what is missing, and which command installs it."""
    from .runtime import doctor as examination

    print(examination.report())


def _progress() -> Progress:
    columns = (TextColumn("{task.description:<44}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=_console, transient=True)


def _exit_if_wrong(mismatches: int) -> None:
    if mismatches:
        _errors.print(f"[bold red]FAILED[/]: {mismatches:,} wrong answers")
        raise typer.Exit(1)


def _fail(message: str) -> None:
    _errors.print("[bold red]error[/]:", end=" ")
    _errors.print(message.strip(), markup=False)
    raise SystemExit(2)
