"""`warphash compile`: compile kernels ahead."""

from __future__ import annotations

from typing import Annotated

import typer

from ..designs import registry
from .limits import listed

__all__ = ["compile"]

_PARAMETERS = ", ".join(registry.usual_parameters())


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
    from ..table.ahead import compile_ahead, parsed

    given = dict(parsed(text) for text in parameter or ())
    types = keys, None if values == "none" else values
    for name in listed(design) or ["auto"]:
        for code in compile_ahead(
            *types, design=name, arch=listed(arch) or None, evict=evict, hash=hash, parameters=given
        ):
            print(f"{code.arch} {code.program}: {'compiled' if code.compiled else 'was there'}")
