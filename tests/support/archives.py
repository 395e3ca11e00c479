"""Saved tables made by hand: any header and any rows, with the right digest."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

MAGIC = b"warphsh1"


def parts_of(path: Path) -> tuple[dict[str, Any], bytes]:
    """Header and rows of a saved table."""
    content = path.read_bytes()
    end = 16 + int.from_bytes(content[8:16], "little")
    return json.loads(content[16:end]), content[end:-32]


def archive(header: Any, rows: bytes, length: int | None = None) -> bytes:
    """A file of a header, as it is if it is bytes and else as JSON, that says to be of ``length`` bytes."""
    encoded = header if isinstance(header, bytes) else json.dumps(header).encode()
    body = MAGIC + (len(encoded) if length is None else length).to_bytes(8, "little") + encoded + rows
    return body + hashlib.sha256(body).digest()
