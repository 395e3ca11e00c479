"""`init`: begin with the other processes, also after ``torchrun`` has started all of them again."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from ..errors import ParameterError

__all__ = ["init"]

_NAMES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_TIMEOUT_S = 1800.0


def init(backend: str | None = None, *, timeout_s: float = _TIMEOUT_S) -> None:
    """Make the process group of all ranks, as ``torch.distributed.init_process_group`` does.

    After a restart by ``torchrun``, that function can read addresses of processes that are gone: they are in the store
    of the agent, which outlives them. Here, each life of the processes has keys of its own there.

    Parameters
    ----------
    backend
        ``"nccl"`` for tables on GPUs, ``"gloo"`` for tables on CPUs. By default, NCCL if this process sees a GPU. With
        NCCL, the process takes the GPU of its ``LOCAL_RANK``.
    timeout_s
        Seconds after which a rank that does not answer is lost.

    Raises
    ------
    ParameterError
        If the program was not started by ``torchrun`` or the like, which tell each process its rank.

    Examples
    --------
    ``torchrun --standalone --nproc-per-node 4 --max-restarts 2 program.py``, and at the head of the program::

        import warphash.distributed as wd
        wd.init()
    """
    missing = [name for name in _NAMES if name not in os.environ]
    if missing:
        raise ParameterError(
            f"the environment has no {', '.join(missing)}: start the program by torchrun, as in "
            "torchrun --standalone --nproc-per-node 2 program.py"
        )
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if backend is None:
        backend = "nccl" if torch.cuda.is_available() else "gloo"
    options: dict[str, Any] = {}
    if backend == "nccl":
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", rank)) % torch.cuda.device_count())
        torch.cuda.set_device(device)
        options["device_id"] = device
    timeout = timedelta(seconds=timeout_s)
    agent_has_store = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    stores: Any = dist  # which does not list them in its ``__all__``
    store = stores.TCPStore(
        os.environ["MASTER_ADDR"],
        int(os.environ["MASTER_PORT"]),
        world,
        is_master=rank == 0 and not agent_has_store,
        timeout=timeout,
    )
    life = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    dist.init_process_group(
        backend, store=stores.PrefixStore(f"life{life}", store), rank=rank, world_size=world, timeout=timeout, **options
    )
