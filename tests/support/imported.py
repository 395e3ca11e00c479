"""Which modules of the package the runs of a gate have imported, so that none is left without a test.

``pytest --imported=FILE`` adds the modules that its processes have imported to a file when they end.
``pytest --all-imported=FILE tests/test_all_modules.py`` compares the file with the package, behind the other runs.
"""

from __future__ import annotations

import pkgutil
import sys
from pathlib import Path

import warphash

__all__ = ["Imported", "modules_of_the_package"]

PREFIX = f"{warphash.__name__}."


class Imported:
    """Adds the imported modules of the package to a file, one a line, when a process of a run ends."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def pytest_sessionfinish(self) -> None:
        names = sorted(name for name in list(sys.modules) if name.startswith(PREFIX))
        with self._file.open("a") as file:  # one write, which other processes do not tear
            file.write("".join(f"{name}\n" for name in names))


def modules_of_the_package() -> set[str]:
    """Names of all modules in the package's folders, but those that only run as programs."""
    found = pkgutil.walk_packages(warphash.__path__, PREFIX, onerror=lambda name: None)
    return {module.name for module in found if not module.name.endswith(".__main__")}
