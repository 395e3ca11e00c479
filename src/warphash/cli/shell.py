"""What all commands share: the consoles, errors and exit codes, and how ``--help`` shows options.

A command exits with 0; with 1 where it found what a shell would ask about, such as wrong answers or duplicates; with 2
for an error, which is one line on standard error; with 130 after Ctrl-C; and with 141 where the reader of standard
output ends first, as `head` does.
"""

from __future__ import annotations

import sys
from typing import Any, NoReturn

from ..errors import WarphashError

__all__ = ["Command", "Group", "console", "errors", "exit_if_wrong", "run"]

try:
    import typer
    from rich.console import Console
    from typer.core import TyperCommand, TyperGroup
except ImportError as error:
    print(
        f"error: the command line needs {(error.name or '').partition('.')[0]}: pip install 'warphash[bench]'",
        file=sys.stderr,
    )
    raise SystemExit(2) from None

console = Console()
errors = Console(stderr=True, highlight=False, soft_wrap=True)

_UsageError: Any = typer.BadParameter.__mro__[1]
"""click's ``UsageError``. Newer versions of typer carry their own copy of click, so the class is taken from typer."""


class Command(TyperCommand):
    """A command whose ``--help`` shows no type for a flag."""

    def get_params(self, ctx: Any) -> Any:
        """List the options and arguments."""
        return _flags_without_type(super().get_params(ctx))


class Group(TyperGroup):
    """The same for the command that has the others."""

    def get_params(self, ctx: Any) -> Any:
        """List the options."""
        return _flags_without_type(super().get_params(ctx))


def _flags_without_type(parameters: Any) -> Any:
    for parameter in parameters:
        if getattr(parameter, "is_flag", False) and parameter.metavar is None:
            parameter.metavar = ""
    return parameters


def run(app: typer.Typer) -> None:
    """Run a command. An error prints one line and exits with code 2."""
    try:
        code = app(sys.argv[1:] or ["--help"], standalone_mode=False)
        sys.stdout.flush()
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


def exit_if_wrong(mismatches: int) -> None:
    """Exit with code 1 if there were wrong answers."""
    if mismatches:
        errors.print(f"[bold red]FAILED[/]: {mismatches:,} wrong answers")
        raise typer.Exit(1)


def _fail(message: str) -> NoReturn:
    errors.print("[bold red]error[/]:", end=" ")
    errors.print(message.strip(), markup=False)
    raise SystemExit(2)
