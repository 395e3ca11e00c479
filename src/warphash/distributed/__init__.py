"""Tables and relational verbs over the processes of ``torch.distributed``, which ``torchrun`` starts."""

from __future__ import annotations

from . import datasets
from .datasets import batches
from .embedding import ShardedEmbedding
from .exchange import Exchanged, exchange
from .join import join
from .multimap import ShardedMultiMap
from .relational import ShardedGroupBy, group_by, isin, unique
from .start import init
from .tables import ShardedMap, ShardedSet

__all__ = [
    "Exchanged",
    "ShardedEmbedding",
    "ShardedGroupBy",
    "ShardedMap",
    "ShardedMultiMap",
    "ShardedSet",
    "batches",
    "datasets",
    "exchange",
    "group_by",
    "init",
    "isin",
    "join",
    "unique",
]
