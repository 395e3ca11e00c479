"""Flags of rows as bits, for messages between ranks, and back (``owners/flag_bits.cuh``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...runtime.abi import FLAG_RUN, MOST_OWNERS, FlagBitsBatch, OwnerSegments
from ...runtime.engine import Engine
from ...runtime.source import OWNERS

__all__ = ["FLAG_RUN", "expect_flag_bits", "pack_flags", "unpack_flags"]

_PACK, _UNPACK = "pack_flags", "unpack_flags"


def expect_flag_bits(engine: Engine) -> None:
    """Begin to compile what this module launches."""
    engine.program(OWNERS).expect([_PACK, _UNPACK])


def pack_flags(engine: Engine, flags: int, bits: int, whole: int, tails: Sequence[int], stream: Any) -> None:
    """Write flags as bits. Does not wait on a GPU.

    Parameters
    ----------
    flags
        Address of bytes, 0 or 1: at a multiple of 8, those of ``whole`` rows first, and then those of the tails.
    bits
        Address of ``whole / 8`` bytes, and of ``FLAG_RUN / 8`` for each tail.
    whole
        A multiple of 8.
    tails
        Rows of each, less than `FLAG_RUN`; at most `MOST_OWNERS`.
    """
    batch = FlagBitsBatch(flags=flags, bits=bits, whole=whole)
    lengths = np.zeros(MOST_OWNERS, np.uint8)
    lengths[: len(tails)] = tails
    batch.tails[:] = lengths.view(np.uint64).tolist()
    batch.n = (whole + FLAG_RUN * len(tails)) // 8
    if batch.n:
        engine.program(OWNERS).run(_PACK, OwnerSegments(), batch, batch.n, stream)


def unpack_flags(engine: Engine, bits: int, flags: int, n: int, stream: Any) -> None:
    """Write bits as flags. Does not wait on a GPU.

    Parameters
    ----------
    bits, flags
        Addresses of both, that of flags at a multiple of 8.
    n
        Rows, a multiple of 8.
    """
    if n:
        batch = FlagBitsBatch(n=n // 8, flags=flags, bits=bits)
        engine.program(OWNERS).run(_UNPACK, OwnerSegments(), batch, n // 8, stream)
