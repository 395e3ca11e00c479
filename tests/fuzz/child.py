"""Forked children of an example: run a function there, and learn how it ended."""

from __future__ import annotations

import atexit
import os
import signal
import tempfile
import time
import traceback
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fuzz.example import Broken, require
from warphash import WarphashError

__all__ = ["Child", "folder"]

REFUSED = "refused"


@contextmanager
def folder() -> Iterator[Path]:
    """A folder that is removed with the block."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made:
        yield Path(made)


class Child:
    """A forked process that runs a function and ends.

    Parameters
    ----------
    body
        Runs in the child. A `WarphashError` is a clear refusal, and any other exception is a finding.
    in_order
        Whether the child runs what is registered for the end of a process (`atexit`) when the body is done.
    """

    def __init__(self, body: Callable[[], Any], *, in_order: bool = False) -> None:
        self._reading, writing = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            os.close(self._reading)
            self._run(body, in_order, writing)
        os.close(writing)

    @staticmethod
    def _run(body: Callable[[], Any], in_order: bool, writing: int) -> None:
        try:
            _disown_folders()
            try:
                with suppress(SystemExit):
                    body()
            except WarphashError as error:
                os.write(writing, f"{REFUSED}\n{error}"[:2000].encode())
            if in_order:
                atexit._run_exitfuncs()
            os._exit(0)
        except BaseException as error:
            frames = traceback.extract_tb(error.__traceback__)
            what = error.what if isinstance(error, Broken) else f"{type(error).__name__} in a child"
            place = f"{frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}"
            os.write(writing, f"{what}\n{place}: {type(error).__name__}: {error}"[:2000].encode())
            os._exit(3)

    def wait(self, seconds: float, what: str) -> str:
        """Wait for the end: the refusal that the body raised, if any. Raise `Broken` if the child found something."""
        end = time.monotonic() + seconds
        while (ended := os.waitpid(self.process, os.WNOHANG))[0] == 0:
            if time.monotonic() > end:
                self.kill()
                raise Broken(f"{what} hangs")
            time.sleep(0.002)
        with os.fdopen(self._reading, "rb") as pipe:
            said, _, detail = pipe.read().decode().partition("\n")
        require(said in ("", REFUSED), said, detail)
        code = os.waitstatus_to_exitcode(ended[1])
        if code < 0 and code != -signal.SIGKILL:
            raise Broken(f"{what} ends with {signal.Signals(-code).name}")
        return detail

    def kill(self) -> None:
        """Kill the child, which may have ended, and wait for its end."""
        with suppress(ProcessLookupError):
            os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)


def _disown_folders() -> None:
    """Have the end of this process remove no temporary folder of its parent."""
    finalizers: dict[Any, Any] = weakref.finalize._registry  # type: ignore[attr-defined]
    for finalizer in list(finalizers):
        if (alive := finalizer.peek()) and isinstance(alive[0], tempfile.TemporaryDirectory):
            finalizer.detach()
