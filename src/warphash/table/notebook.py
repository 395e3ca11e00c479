"""A table's figures as HTML, which notebooks show instead of `repr`."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from .closed import ClosedStorage

if TYPE_CHECKING:
    from .base import BaseTable

__all__ = ["html"]


def html(table: BaseTable) -> str:
    """A small HTML table of what a table is and holds. Reads no pair."""
    name = type(table).__name__
    if isinstance(table._storage, ClosedStorage):
        return f"<b>{escape(name)}</b>, closed"
    stats = table.stats()
    rows = {
        "key": table._key.name,
        "value": "" if table._value is None else str(table._value.numpy),
        "keys" if not table._multi else "pairs": f"{stats.size:,}",
        "slots": f"{stats.slots:,}",
        "load factor": f"{stats.load_factor:.3f}",
        "memory": _bytes(stats.nbytes),
        "design": table.design,
        "device": table.device,
    }
    cells = "".join(f"<tr><th>{escape(what)}</th><td>{escape(said)}</td></tr>" for what, said in rows.items() if said)
    return f"<table><caption><b>{escape(name)}</b></caption><tbody>{cells}</tbody></table>"


def _bytes(n: int) -> str:
    """A number of bytes in the largest unit of which there is one or more."""
    size, units = float(n), ["bytes", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size, units = size / 1024, units[1:]
    return f"{size:,.1f} {units[0]}" if size < n else f"{n:,} bytes"
