"""Tables and relational verbs over the processes of ``torch.distributed``, which ``torchrun`` starts."""

from __future__ import annotations

from .exchange import Exchanged, exchange
from .start import init
from .tables import ShardedMap, ShardedSet

__all__ = ["Exchanged", "ShardedMap", "ShardedSet", "exchange", "init"]
