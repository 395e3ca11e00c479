"""Tables inside PyTorch programs: as operators that ``torch.compile`` keeps whole, and as a module with a checkpoint.

Importing this package imports PyTorch. Nothing else of warphash does: tables take and return tensors without it.
"""

from .handle import TableHandle
from .id_map import IdMap

__all__ = ["IdMap", "TableHandle"]
