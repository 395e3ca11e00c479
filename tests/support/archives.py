"""Saved files made by hand, with any header and any rows and the right digest; and saves that are killed."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

MAGIC = b"warphsh1"


def parts_of(path: Path) -> tuple[dict[str, Any], bytes]:
    """Read the header and the rows of a saved table."""
    content = path.read_bytes()
    end = 16 + int.from_bytes(content[8:16], "little")
    return json.loads(content[16:end]), content[end:-32]


def archive(header: Any, rows: bytes, length: int | None = None) -> bytes:
    """The bytes of an archive. ``header`` is bytes, or is written as JSON. The header's stated length is ``length``."""
    encoded = header if isinstance(header, bytes) else json.dumps(header).encode()
    body = MAGIC + (len(encoded) if length is None else length).to_bytes(8, "little") + encoded + rows
    return body + hashlib.sha256(body).digest()


def save_and_kill(program: str, path: Path, delay_s: float) -> None:
    """Run a program that prints "ready" and then saves to a path again and again; kill it after some seconds."""
    process = subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    time.sleep(delay_s)
    process.kill()
    process.wait()
    process.stdout.close()
