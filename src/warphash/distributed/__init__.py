"""Tables and relational verbs over the processes of ``torch.distributed``, which ``torchrun`` starts."""

from __future__ import annotations

from .multimap import ShardedMultiMap
from .start import init
from .tables import ShardedMap, ShardedSet

__all__ = ["ShardedMap", "ShardedMultiMap", "ShardedSet", "init"]
