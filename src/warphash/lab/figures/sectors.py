"""Count the sectors of memory that an operation moves for each key, from the buckets that it reads.

Better GPU Hash Tables (Awad et al., 2021), section VII-E. A sector is 32 bytes. A bucket of 16 pairs of 4 + 4 bytes is
four sectors. An insert also swaps its pair in, which moves at least one more.
"""

from __future__ import annotations

from ...designs.layout import Reads

__all__ = ["SECTOR_BYTES", "sectors_per_key"]

SECTOR_BYTES = 32


def sectors_per_key(operation: str, probes_per_key: float, reads: Reads) -> float:
    """Sectors that an operation moves for each key, without caches and without the arrays of the batch.

    Parameters
    ----------
    operation
        As `lab.bench.runner.Measurement` names it. Finds read; all other operations also swap one pair.
    probes_per_key
        Buckets read for each key.
    reads
        What a probe reads, in a table whose values lie beside their keys.
    """
    per_bucket = -(-reads.bucket_bytes // SECTOR_BYTES)
    return probes_per_key * per_bucket + (0 if operation.startswith("find") else 1)
