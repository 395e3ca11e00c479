"""Allocations are refused in the middle of random verbs: a `MemoryError` or `TableFull`, and the table as it was.

The engine refuses one allocation, or all from some number on; or the address space of the process ends.
"""

from __future__ import annotations

import contextlib
import resource
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fuzz.child import Child, folder
from fuzz.containers import VIEWS
from fuzz.example import Example
from fuzz.key_types import KEY_TYPES
from fuzz.subject import VALUE_TYPES, VERBS, Subject
from support.refusals import refusing
from warphash import TableFull
from warphash.runtime.devices import engine_for

PAGE = 4096


def run(example: Example) -> None:
    example.choose_design()
    with folder() as home:
        if example.happens(0.3):
            Child(lambda: _without_address_space(example, home)).wait(60, "a process without address space")
        else:
            _with_refusals(example, home)


def _subject(example: Example, home: Path) -> Subject:
    key = example.choose(KEY_TYPES)
    options: dict[str, Any] = {}
    has_file = key.spec in ("str", "bytes") or not (isinstance(key.spec, list) or key.options)
    if example.design == "stadium" and example.happens(0.5) and has_file:
        options["memory"] = home / "t.tab"
    value = None if example.happens(0.2) else example.choose(VALUE_TYPES)
    return Subject(example, key, value, **options)


def _with_refusals(example: Example, home: Path) -> None:
    """Refuse some allocations of the engine."""
    subject = _subject(example, home)

    def scarce() -> Any:
        first, once = int(example.rng.geometric(0.3)), example.happens(0.5)
        example.note(f"... allocation {first}{'' if once else ' and all behind it'} is refused")
        return refusing(engine_for("cpu"), first, once=once)

    _try_verbs(subject, scarce)


def _without_address_space(example: Example, home: Path) -> None:
    """Let a call have a few pages of address space. Polars ends the process then, so keys are NumPy's."""
    subject = _subject(example, home)
    subject.containers = VIEWS

    def scarce() -> Any:
        pages = int(2 ** (example.rng.random() * 12))
        example.note(f"... with {pages} pages of address space left")
        return _pages_left(pages)

    _try_verbs(subject, scarce)


def _try_verbs(subject: Subject, scarce: Callable[[], Any]) -> None:
    for _ in range(subject.example.between(3, 12)):
        subject.around = scarce
        with contextlib.suppress(MemoryError, TableFull):
            subject.example.choose(VERBS)(subject)
        subject.around = contextlib.nullcontext
        subject.check("table behind a call without memory")


def _grow_stack() -> None:
    """Have half a megabyte of the stack mapped. Linux ends a process whose stack has to grow, and may not."""
    nested: list[Any] = []
    for _ in range(5000):
        nested = [nested]
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)
    repr(nested)
    sys.setrecursionlimit(limit)


@contextlib.contextmanager
def _pages_left(pages: int) -> Iterator[None]:
    _grow_stack()
    used = int(Path("/proc/self/statm").read_text().split()[0])
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (PAGE * (used + pages), limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
