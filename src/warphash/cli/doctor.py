"""`warphash doctor`: report what runs here."""

from __future__ import annotations

from typing import Annotated

import typer

from ..runtime.doctor import ASKED

__all__ = ["doctor"]


def doctor(
    asked: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME...", help=f"Exit with 1 if one of these is missing: {', '.join(ASKED)}."),
    ] = None,
) -> None:
    """Report what runs here, what is missing, and which command installs it."""
    from ..runtime.doctor import examined

    raise typer.Exit(examined(asked or []))
