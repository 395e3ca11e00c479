"""Processes that are the ranks of a group, for tests: they are started once, and run one function after the other."""

from __future__ import annotations

import multiprocessing
import os
import socket
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any

TIMEOUT_S = 60.0
"""After which a rank that does not answer is lost, unless a test says otherwise."""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def serve(rank: int, world: int, port: int, timeout_s: float, calls: Connection) -> None:
    """A rank: runs the functions that come, and answers with their results or errors."""
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(world), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    os.environ.update(GLOO_SOCKET_IFNAME="lo")
    import torch

    import warphash
    import warphash.distributed as distributed

    torch.set_num_threads(1)
    warphash.set_num_threads(1)
    distributed.init("gloo", timeout_s=timeout_s)
    while True:
        try:
            work, arguments = calls.recv()
        except EOFError:
            return
        try:
            answer = work(*arguments), None
        except BaseException:
            answer = None, traceback.format_exc()
        calls.send(answer)


class Ranks:
    """Processes over one group."""

    def __init__(self, world: int, timeout_s: float = TIMEOUT_S) -> None:
        self.world = world
        start, port = multiprocessing.get_context("spawn"), free_port()
        pipes = [start.Pipe() for _ in range(world)]
        self.processes = [
            start.Process(target=serve, args=(rank, world, port, timeout_s, theirs), daemon=True)
            for rank, (_, theirs) in enumerate(pipes)
        ]
        self._calls = [mine for mine, _ in pipes]
        for process, (_, theirs) in zip(self.processes, pipes, strict=True):
            process.start()
            theirs.close()

    def outcomes(self, work: Callable[..., Any], *arguments: Any) -> list[tuple[Any, str | None]]:
        """Run a function of a module on all ranks: the result of each, and what it raised."""
        for calls in self._calls:
            with suppress(BrokenPipeError):
                calls.send((work, arguments))
        made: list[tuple[Any, str | None]] = []
        for calls in self._calls:
            try:
                made.append(calls.recv())
            except (EOFError, ConnectionResetError):
                made.append((None, "the process ended"))
        return made

    def run(self, work: Callable[..., Any], *arguments: Any) -> list[Any]:
        """As `outcomes`, of a function that raises on no rank."""
        made = self.outcomes(work, *arguments)
        errors = [f"rank {rank}:\n{error}" for rank, (_, error) in enumerate(made) if error]
        assert not errors, "\n".join(errors)
        return [result for result, _ in made]

    def close(self) -> None:
        for calls in self._calls:
            calls.close()
        for process in self.processes:
            process.join(5)
            if process.is_alive():
                process.kill()


@contextmanager
def new_ranks(world: int, timeout_s: float = TIMEOUT_S) -> Iterator[Ranks]:
    """Ranks of which some may be lost."""
    made = Ranks(world, timeout_s)
    try:
        yield made
    finally:
        made.close()
