"""`warphash tune`: measure and store thresholds of a GPU."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from .shell import console

__all__ = ["tune"]


def tune(
    keys: Annotated[str, typer.Option(help="Type of keys.")] = "uint64",
    values: Annotated[str, typer.Option(help="Type of values; none for a set.")] = "uint64",
    ticket_bits: Annotated[int, typer.Option(help="Bits of a ticket, of design stadium: 1, 2, 4 or 8.")] = 8,
    n: Annotated[int, typer.Option(min=1 << 16, max=1 << 30, help="Pairs in the tables that are measured.")] = 1 << 26,
    design: Annotated[str, typer.Option(help="stadium, or a design whose large lookups can go by parts.")] = "stadium",
    device: Annotated[str, typer.Option(help="cuda or cuda:1.")] = "cuda",
) -> None:
    """Measure and store what is faster on this GPU: when lanes of stadium collaborate, when lookups go by parts."""
    from .. import HashMap, HashSet
    from ..errors import ParameterError
    from ..lab.bench import turns
    from ..storage.batch_order import calibrate, lookups
    from ..storage.tickets import threshold

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
    console.print(f"{table.device}, {table.design}, {keys} to {values}: {said}", highlight=False)
