"""A table's figures as HTML, which notebooks show instead of `repr`."""

from __future__ import annotations

from html import escape

from .facts import Facts
from .front import Front
from .stats import Stats

__all__ = ["html"]


def html(facts: Facts, front: Front, stats: Stats | None) -> str:
    """A small HTML table of what a table is and holds; ``stats`` is None of a closed one."""
    if stats is None:
        return f"<b>{escape(facts.name)}</b>, closed"
    rows = {
        "key": front.key.name,
        "value": "" if front.value is None else front.value.name,
        "keys" if not facts.is_multi else "pairs": f"{stats.size:,}",
        "slots": f"{stats.slots:,}",
        "load factor": f"{stats.load_factor:.3f}",
        "memory": _bytes(stats.nbytes),
        "design": stats.design,
        "device": front.device,
    }
    cells = "".join(f"<tr><th>{escape(what)}</th><td>{escape(said)}</td></tr>" for what, said in rows.items() if said)
    return f"<table><caption><b>{escape(facts.name)}</b></caption><tbody>{cells}</tbody></table>"


def _bytes(n: int) -> str:
    """A number of bytes in the largest unit of which there is one or more."""
    size, units = float(n), ["bytes", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size, units = size / 1024, units[1:]
    return f"{size:,.1f} {units[0]}" if size < n else f"{n:,} bytes"
