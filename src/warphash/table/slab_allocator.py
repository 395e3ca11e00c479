"""SlabAllocator: slabs of 128 bytes on one device, taken and given back in batches, or by lanes of a running kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ParameterError, ShapeError, UnsupportedVerb
from ..runtime.devices import engine_for
from ..storage.chains.node_pool import MAX_BLOCKS, MAX_SUPER_BLOCKS, SlabPool
from .options import integer

__all__ = ["SlabAllocator"]


class SlabAllocator:
    """Slabs of 128 bytes in super blocks of memory blocks of 1,024, with addresses of 32 bits.

    SlabAlloc of *A Dynamic Hash Table for the GPU* (Ashkiani et al., 2018), section V. Not safe from several threads.

    Parameters
    ----------
    device
        ``"cpu"``, ``"cuda"``, ``"cuda:1"``; None takes a GPU if one is usable.
    blocks_per_super_block
        Number of memory blocks in a super block, 1 to 16,384. A memory block has 128 KiB.
    super_blocks
        Number of super blocks at first, 1 to 255.
    on_full
        ``"grow"`` by a super block, or ``"raise"``.

    Raises
    ------
    ParameterError, DeviceError, EngineUnavailable, MemoryError

    Examples
    --------
    >>> import warphash
    >>> slabs = warphash.SlabAllocator(device="cpu", blocks_per_super_block=1)
    >>> addresses = slabs.allocate(3)
    >>> len(slabs), slabs.capacity
    (3, 1024)
    >>> slabs.deallocate(addresses)
    >>> len(slabs)
    0
    """

    def __init__(
        self,
        *,
        device: str | None = None,
        blocks_per_super_block: int = 256,
        super_blocks: int = 1,
        on_full: str = "grow",
    ) -> None:
        for name, value, most in (
            ("blocks_per_super_block", blocks_per_super_block, MAX_BLOCKS),
            ("super_blocks", super_blocks, MAX_SUPER_BLOCKS),
        ):
            if integer(name, value, 1) > most:
                raise ParameterError(f"{name} must be at most {most:,}, got {value:,}")
        if on_full not in ("grow", "raise"):
            raise ParameterError(f"on_full must be 'grow' or 'raise', got {on_full!r}")
        self._grows = on_full == "grow"
        self._engine: Any = engine_for(device)
        self._pool = SlabPool(self._engine, int(blocks_per_super_block), int(super_blocks))
        self._taken = 0

    @property
    def device(self) -> str:
        """Where the slabs are."""
        return str(self._engine.device)

    @property
    def capacity(self) -> int:
        """Number of slabs, taken and free."""
        return self._pool.capacity

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the slabs and their bitmaps take."""
        return self._pool.nbytes

    def __len__(self) -> int:
        return self._taken

    def __repr__(self) -> str:
        return (
            f"<SlabAllocator: {len(self):,} of {self.capacity:,} slabs taken, in {self._pool.super_blocks} super "
            f"blocks of {self._pool.blocks:,} memory blocks, on {self.device}>"
        )

    def __reduce__(self) -> str:
        raise UnsupportedVerb(
            "a SlabAllocator is neither copied nor pickled: a copy would give out slabs whose addresses somebody holds "
            "already, and an address means nothing to another allocator; make a new SlabAllocator, and allocate from "
            "that one"
        )

    def allocate(self, n: int) -> npt.NDArray[np.uint32]:
        """Take ``n`` slabs. All bytes of a new slab are 0xFF.

        Parameters
        ----------
        n
            Number of slabs.

        Returns
        -------
        uint32[n]
            Their addresses, in host memory.

        Raises
        ------
        MemoryError
            If too few slabs are free, and the allocator may not grow or finds no memory. No slab is taken.

        Notes
        -----
        O(n).

        Examples
        --------
        >>> import warphash
        >>> slabs = warphash.SlabAllocator(device="cpu", blocks_per_super_block=1)
        >>> slabs.allocate(2).dtype, len(slabs)
        (dtype('uint32'), 2)
        """
        n = integer("n", n, 0)
        while (short := n - (self.capacity - self._taken)) > 0:
            if not self._grows:
                raise MemoryError(f"{n:,} slabs were asked for and {n - short:,} are free; allow on_full='grow'")
            self._pool.grow()
        room = self._engine.allocate(4 * n)
        taken = self._pool.take(room.ptr, n) if n else 0
        assert taken == n, "the allocator found fewer slabs than are free"
        self._taken += n
        addresses: npt.NDArray[np.uint32] = self._engine.to_host(room.ptr, np.uint32, n)
        return addresses

    def deallocate(self, addresses: npt.ArrayLike) -> None:
        """Give slabs back.

        Parameters
        ----------
        addresses
            Addresses that `allocate` returned, each once; uint32[n].

        Raises
        ------
        ShapeError, ParameterError
            If ``addresses`` has more than one axis, or if some of them are of no slab of this allocator or of a slab
            that is free. The slabs of the other addresses are free then.

        Notes
        -----
        O(n).

        Examples
        --------
        >>> import warphash
        >>> slabs = warphash.SlabAllocator(device="cpu", blocks_per_super_block=1)
        >>> slabs.deallocate(slabs.allocate(2))
        >>> len(slabs)
        0
        """
        given = np.asarray(addresses)
        if given.ndim != 1:
            raise ShapeError(f"addresses must have shape (n,), got {given.shape}")
        if given.dtype != np.uint32 and given.size:
            raise ParameterError(f"addresses must be uint32, as allocate returned them, got {given.dtype}")
        if not given.size:
            return
        held = self._engine.from_host(np.ascontiguousarray(given))
        freed, unknown = self._pool.give_back(held.ptr, given.size)
        self._taken -= freed
        if freed != given.size:
            raise ParameterError(
                f"of {given.size:,} addresses {unknown:,} are of no slab here and {given.size - freed - unknown:,} of "
                "slabs that were free already: give each back once"
            )
