"""Limits of numbers that several commands take."""

from __future__ import annotations

__all__ = ["MOST_KEYS", "MOST_SEED"]

MOST_KEYS = 1 << 40
MOST_SEED = (1 << 32) - 1
