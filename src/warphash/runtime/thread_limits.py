"""The threads of the CPU engine as threadpoolctl shows and limits them.

threadpoolctl looks for the file of a library among those that the process has loaded, and asks a registered controller
for its threads. It has no list of packages to ask, so warphash has to register. warphash does not import threadpoolctl
by itself: a program that has not imported threadpoolctl cannot limit threads by it.
"""

from __future__ import annotations

import sys
from typing import Any

from ..settings import get_num_threads, set_num_threads
from ..version import __version__

__all__ = ["register"]

_registered = False


def register() -> None:
    """Register the CPU engine with threadpoolctl, once, if the program has imported threadpoolctl.

    Every table on the CPU calls this when it is made.
    """
    global _registered
    threadpoolctl: Any = sys.modules.get("threadpoolctl")
    if not _registered and hasattr(threadpoolctl, "register"):
        _registered = True
        threadpoolctl.register(_controller(threadpoolctl.LibController))


def _controller(base: Any) -> type:
    """The class that threadpoolctl asks."""

    class CpuEngineController(base):  # type: ignore[misc]  # a class of another package
        user_api = internal_api = "warphash"
        filename_prefixes = ("_cpu",)
        check_symbols = ("warphash_cpu_engine",)

        def get_num_threads(self) -> int:
            return get_num_threads()

        def set_num_threads(self, num_threads: int) -> None:
            set_num_threads(num_threads)

        def get_version(self) -> str:
            return __version__

    return CpuEngineController
