"""Host memory that the process may still take, as far as the system reports it."""

from __future__ import annotations

from pathlib import Path

__all__ = ["available_bytes"]

_SYSTEM = Path("/proc/meminfo")

_CONTAINERS = (
    ("/sys/fs/cgroup", "memory.max", "memory.current", "file"),
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "cache"),
)
"""Folders of both versions of Linux' control groups: files with the limit and the use, and what ``memory.stat`` calls
the part of the use that caches files."""


def available_bytes() -> int | None:
    """Bytes that can be taken before the system ends a process for want of memory; None if it does not report them.

    Linux hands out more memory than there is, and ends a process when it is used. So a call that is about to take much
    memory has to ask first. Other systems refuse it, and report nothing here.
    """
    known = [_free_in_system(), *(_free_in_container(*names) for names in _CONTAINERS)]
    return min((free for free in known if free is not None), default=None)


def _free_in_system() -> int | None:
    """Free memory and free swap, in bytes."""
    try:
        sizes = _numbers_of(_SYSTEM.read_text())
        return 1024 * (sizes["MemAvailable:"] + sizes.get("SwapFree:", 0))
    except (OSError, KeyError, ValueError):
        return None


def _free_in_container(folder: str, limit: str, use: str, cached: str) -> int | None:
    """Bytes up to the limit of a control group; None if there is no limit."""
    at = Path(folder)
    try:
        most, used = (int((at / name).read_text()) for name in (limit, use))  # "max" is no number
        return max(0, most - used + _numbers_of((at / "memory.stat").read_text()).get(cached, 0))
    except (OSError, ValueError):
        return None


def _numbers_of(text: str) -> dict[str, int]:
    """The first number of each line, by the word ahead of it."""
    return {words[0]: int(words[1]) for line in text.splitlines() if len(words := line.split()) > 1}
