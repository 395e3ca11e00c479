"""The rival ``pyarrow.compute.index_in``, which builds and looks up in one call."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .base import Rival

RIVAL = Rival(
    "pyarrow index_in",
    build=lambda keys, values: pa.array(keys),
    find=lambda table, keys: np.asarray(pc.index_in(pa.array(keys), value_set=table).is_valid()),
    builds=False,
)
