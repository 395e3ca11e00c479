"""What the laboratory's tests share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The figures of matplotlib that are drawn. They stay open until the test ends."""
    plt = pytest.importorskip("matplotlib.pyplot")
    close, canvases = plt.close, list[Any]()
    monkeypatch.setattr(plt, "close", canvases.append)
    yield canvases
    for canvas in canvases:
        close(canvas)
