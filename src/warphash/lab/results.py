"""Save and load results.json: measurements, with the machine and the command that made them."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .. import __version__, atomic_file
from ..errors import ParameterError
from .runner import Measurement

__all__ = ["SCHEMA", "load", "save"]

SCHEMA = 1
"""Version of the file's layout."""


def save(
    path: str | os.PathLike[str], measurements: Sequence[Measurement], command: str, machine: str, **more: Any
) -> None:
    """Write measurements to a file. An older file of that name stays until the new file is complete."""
    content = {
        "schema": SCHEMA,
        "warphash": __version__,
        "command": command,
        "machine": machine,
        **more,
        "measurements": [asdict(m) for m in measurements],
    }
    text = json.dumps(content, indent=1) + "\n"
    atomic_file.replace(path, lambda file: file.write(text.encode()))


def load(path: str | os.PathLike[str]) -> tuple[dict[str, Any], list[Measurement]]:
    """Read a file of `save`. Return its other entries, and its measurements."""
    content = json.loads(Path(path).read_text())
    if content.get("schema") != SCHEMA:
        raise ParameterError(f"{path} has schema {content.get('schema')!r}, expected {SCHEMA}: measure again")
    return content, [Measurement(**m) for m in content.pop("measurements")]
