"""Runs examples in forked workers, and goes on when an example ends its worker or hangs.

The parent never makes a table, so a worker begins as a fresh process would. A worker runs one batch of examples of one
kind. It says which example it begins, and sends what it found. The parent replaces a worker that dies or says nothing
for the kind's time limit: both are findings of the example that was running.
"""

from __future__ import annotations

import os
import pickle
import pkgutil
import selectors
import signal
import time
import traceback
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

from fuzz.containers import makers
from fuzz.example import Example
from fuzz.finding import STEPS, Finding, finding_of

__all__ = ["Batch", "Kind", "find", "run"]


_LENGTH = 4  # bytes that say how long a message is


class Kind(NamedTuple):
    """A kind of examples.

    Attributes
    ----------
    run
        Runs one example, and raises if an invariant is broken.
    share
        Share of this kind in all examples, in parts of the sum of all shares.
    batch
        Examples that one worker runs, one after another. With 1, each example has a fresh process of its own.
    limit_s
        Seconds that an example may take before it counts as hung.
    """

    run: Callable[[Example], None]
    share: int
    batch: int
    limit_s: float


class Batch(NamedTuple):
    """Some examples for one worker."""

    name: str
    kind: Kind
    seed: int
    numbers: range


def load_everything() -> None:
    """Import all libraries, and what tables import when they are first needed, so that no worker has to."""
    makers()
    for room in ("arrays", "designs", "runtime", "storage", "table"):
        package = import_module(f"warphash.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            with suppress(ImportError, AttributeError):  # of a library that is not installed
                import_module(module.name)


def find(kind: Kind, example: Example) -> Finding | None:
    """Run one example in this process."""
    try:
        kind.run(example)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        return finding_of(example, error)
    return None


def run(batches: list[Batch], jobs: int, report: Callable[[int, list[Finding]], None]) -> list[Finding]:
    """Run batches in ``jobs`` workers at a time. ``report`` is told each number of examples done, and all findings."""
    load_everything()
    waiting, running = deque(batches), set[_Worker]()
    findings: list[Finding] = []
    done = 0
    with selectors.DefaultSelector() as selector:
        try:
            while waiting or running:
                while waiting and len(running) < jobs:
                    worker = _start(waiting.popleft())
                    selector.register(worker.pipe, selectors.EVENT_READ, worker)
                    running.add(worker)
                for key, _ in selector.select(0.2):
                    key.data.receive()
                for worker in list(running):
                    end = worker.ended()
                    if end is None:
                        continue
                    selector.unregister(worker.pipe)
                    running.discard(worker)
                    findings += worker.finish(end)
                    done += worker.done
                    if worker.remaining:
                        waiting.appendleft(worker.batch._replace(numbers=worker.remaining))
                    report(done, findings)
        finally:
            for worker in running:
                worker.kill()
    return findings


@dataclass(eq=False)
class _Worker:
    """A forked process that runs a batch, as its parent sees it."""

    batch: Batch
    process: int
    pipe: int
    example: Example | None = None  # that runs now
    since: float = field(default_factory=time.monotonic)
    done: int = 0
    received: bytearray = field(default_factory=bytearray)
    findings: list[Finding] = field(default_factory=list)
    is_closed: bool = False

    def receive(self) -> None:
        """Take the messages that the worker has written."""
        chunk = os.read(self.pipe, 1 << 16)
        self.is_closed = not chunk
        self.received += chunk
        while len(self.received) >= _LENGTH:
            end = _LENGTH + int.from_bytes(self.received[:_LENGTH], "little")
            if len(self.received) < end:
                break
            self._take(*pickle.loads(bytes(self.received[_LENGTH:end])))
            del self.received[:end]

    def _take(self, what: str, content: Any) -> None:
        if what == "finding":
            self.findings.append(content)
        elif what == "step" and self.example:
            self.example.note(content)
        elif what == "design" and self.example:
            self.example.design = content
        elif what in ("begin", "end"):
            self.done += self.example is not None
            self.example = None if what == "end" else Example(self.batch.name, self.batch.seed, content)
            self.since = time.monotonic()

    def ended(self) -> str | None:
        """How the worker ended: an empty string if it did all examples. None while it runs."""
        if not self.is_closed and time.monotonic() - self.since <= self.batch.kind.limit_s:
            return None
        code = 0 if not self.is_closed else os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])
        self.kill()
        if not self.is_closed:
            return "hangs"
        if code < 0:
            return f"ends the process with {signal.Signals(-code).name}"
        return f"ends the process with code {code}" if self.example is not None else ""

    def kill(self) -> None:
        """End the worker and what it forked: its process group."""
        with suppress(ProcessLookupError):
            os.killpg(self.process, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(self.process, 0)

    def finish(self, end: str) -> list[Finding]:
        """All findings, with that of an example that ended the worker."""
        os.close(self.pipe)
        if self.example is not None:
            example = self.example
            steps = tuple(example.steps[-STEPS:])
            self.findings.append(Finding(example.kind, example.design, end, end, example.command, steps))
            self.done += 1
        return self.findings

    @property
    def remaining(self) -> range:
        """The examples behind one that ended the worker."""
        if self.example is None:
            return range(0)
        return self.batch.numbers[self.batch.numbers.index(self.example.number) + 1 :]


def _start(batch: Batch) -> _Worker:
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reading)
        _work(batch, writing)
    os.close(writing)
    return _Worker(batch, process, reading)


def _work(batch: Batch, pipe: int) -> NoReturn:
    """Run a batch in a process group of its own, and leave without the parent's handlers."""

    def tell(what: str, content: Any) -> None:
        message = pickle.dumps((what, content))
        left = len(message).to_bytes(_LENGTH, "little") + message
        while left:
            left = left[os.write(pipe, left) :]

    code = 1
    try:
        os.setpgid(0, 0)
        for number in batch.numbers:
            tell("begin", number)
            finding = find(batch.kind, Example(batch.name, batch.seed, number, listener=tell))
            if finding is not None:
                tell("finding", finding)
        tell("end", None)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)
