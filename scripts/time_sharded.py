"""Time the verbs of `warphash.distributed.ShardedMap`, beside the same verbs of each rank's own table alone.

::

    torchrun --standalone --nproc-per-node 2 scripts/time_sharded.py --keys 50000000
    torchrun --standalone --nproc-per-node 2 scripts/time_sharded.py --keys 5000000 --backend gloo

Each rank builds a table of so many keys, and finds as many: all of them present, half of them, and a batch half of
which is one key. A time is the median over ``--rounds`` of the slowest rank's. Beside it stands that of a `HashMap` of
the rank's own keys, of which all ranks are timed at once. Every answer is compared. The exchange is that of as many
keys, by ``all_to_all_single``. Rank 0 prints G keys a second of one rank, sharded and alone, and the share.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.distributed as dist

import warphash
import warphash.distributed as distributed

_MIX = 0x9E3779B97F4A7C15 - (1 << 64)


class Timer:
    """Times calls of all ranks."""

    def __init__(self, rounds: int, place: torch.device) -> None:
        self._rounds, self._place = rounds, place

    def _settle(self) -> None:
        if self._place.type == "cuda":
            torch.cuda.synchronize()

    def __call__(self, call: Callable[[], Any]) -> float:
        """Seconds of a call, of the slowest rank: the median."""
        call()
        times = []
        for _ in range(self._rounds):
            self._settle()
            dist.barrier()
            self._settle()
            begin = time.perf_counter()
            call()
            self._settle()
            took = torch.tensor([time.perf_counter() - begin], device=self._place)
            dist.all_reduce(took, op=dist.ReduceOp.MAX)
            times.append(float(took))
        return statistics.median(times)


def values_of(keys: torch.Tensor) -> torch.Tensor:
    return keys ^ 0x5BD1E995


def measure(dtype: torch.dtype, n: int, timer: Timer, place: torch.device, options: dict[str, Any]) -> list[str]:
    rank, world = dist.get_rank(), dist.get_world_size()
    kind = str(dtype).removeprefix("torch.")
    # Different keys on all ranks: an odd product is a permutation of the integers.
    numbers = torch.arange(rank * n, rank * n + n, device=place, dtype=torch.int64)
    present = (numbers * _MIX).to(dtype) if dtype == torch.int64 else (numbers * 0x9E3779B1 & 0xFFFFFFFF).to(dtype)
    chance = torch.Generator(device=place).manual_seed(rank)
    order = torch.randperm(n, device=place, generator=chance)
    far = torch.arange(world * n + rank * n, world * n + rank * n + n, device=place, dtype=torch.int64)
    absent = (far * _MIX).to(dtype) if dtype == torch.int64 else (far * 0x9E3779B1 & 0xFFFFFFFF).to(dtype)
    is_absent = torch.rand(n, device=place, generator=chance) < 0.5
    mixed = torch.where(is_absent, absent, present[order])
    hot = torch.where(is_absent, torch.full_like(present, int(present[0])), present[order])
    values = values_of(present)

    def check(what: str, table: Any, batch: torch.Tensor, expected: torch.Tensor) -> None:
        got, found = table.find(batch)
        if not torch.equal(found, expected) or not torch.equal(got[found], values_of(batch[found])):
            print(f"WRONG on rank {rank}: {what} of {kind}", flush=True)
            sys.exit(1)

    everything = torch.ones(n, dtype=torch.bool, device=place)
    alone = warphash.HashMap.from_arrays(present, values, device=options["device"])
    check("find alone", alone, mixed, ~is_absent)
    sharded = distributed.ShardedMap(kind, kind, capacity=n * world, piece_bytes=options["piece_bytes"])
    assert bool(sharded.insert(present, values).all())
    batches = {"find, present": present[order], "find, half present": mixed, "find, half one key": hot}
    for what, batch in batches.items():
        check(what, sharded, batch, ~is_absent if "half present" in what else everything)

    def build_alone() -> None:
        warphash.HashMap.from_arrays(present, values, device=options["device"])

    made = distributed.ShardedMap(kind, kind, capacity=n * world, piece_bytes=options["piece_bytes"])

    def build() -> None:
        made.clear()
        made.insert(present, values)

    rows = [("build", timer(build_alone), timer(build))]
    assert made.total() == n * world
    for what, batch in batches.items():
        own, all_ranks = (timer(partial(table.find, batch)) for table in (alone, sharded))
        rows.append((what, own, all_ranks))
    sent = torch.empty_like(present)
    exchange = timer(lambda: dist.all_to_all_single(sent[: n // world * world], present[: n // world * world]))
    moved = present.element_size() * (n // world) * (world - 1)
    bandwidth = f"all_to_all_single {moved / exchange / 1e9:.1f} GB/s out of a rank"
    lines = [f"{kind}, {n:,} keys of each of {world} ranks; {bandwidth}"]
    for what, own, all_ranks in rows:
        lines.append(f"  {what:20} {n / all_ranks / 1e9:8.3f} of {n / own / 1e9:8.3f}: {own / all_ranks:.2f}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=50_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--backend", choices=("nccl", "gloo"))
    parser.add_argument("--piece-bytes", type=int)
    parser.add_argument("--threads", type=int, help="of each rank on a CPU")
    asked = parser.parse_args()
    if asked.threads:
        warphash.set_num_threads(asked.threads)
        torch.set_num_threads(asked.threads)
    distributed.init(asked.backend, timeout_s=120)
    is_gpu = dist.get_backend() == "nccl"
    place = torch.device("cuda", torch.cuda.current_device()) if is_gpu else torch.device("cpu")
    options = {"device": f"cuda:{place.index}" if is_gpu else "cpu", "piece_bytes": asked.piece_bytes}
    for dtype in (torch.int64, torch.int32):
        lines = measure(dtype, asked.keys, Timer(asked.rounds, place), place, options)
        if dist.get_rank() == 0:
            print("\n".join(lines), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
