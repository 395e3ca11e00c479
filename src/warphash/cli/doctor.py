"""`warphash doctor`: report what runs here."""

from __future__ import annotations

__all__ = ["doctor"]


def doctor() -> None:
    """Report what runs here, what is missing, and which command installs it."""
    from ..runtime import doctor as examination

    print(examination.report())
