"""Count keys on several processes, and go on from a checkpoint when one is killed. Starts itself by torchrun."""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch.distributed

import warphash.distributed as wd

BATCHES, KEYS = 12, 5_000


def batch(number: int, n: int) -> npt.NDArray[np.int64]:
    """The keys of a batch. Each rank takes its part of them, however many ranks there are."""
    return np.random.default_rng(number).integers(0, KEYS, n)


def count(folder: Path, n: int, kills: int, seed: int) -> None:
    """What each process does: also after torchrun has started all of them again."""
    wd.init("gloo", timeout_s=60)
    rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    is_resumed = (folder / "manifest.json").exists()
    counts = wd.ShardedMap.load(folder) if is_resumed else wd.ShardedMap("int64", "int64")
    first = counts.note or 0  # saved together with the counts: so no batch is counted twice
    chance = random.Random(f"{seed} {first} {os.environ['TORCHELASTIC_RESTART_COUNT']}")
    unlucky, last = chance.randrange(world), first + chance.randrange(2, 6)
    for number in range(first, BATCHES):
        if number == last and rank == unlucky and int(os.environ["TORCHELASTIC_RESTART_COUNT"]) < kills:
            threading.Timer(chance.random() / 50, os.kill, (os.getpid(), signal.SIGKILL)).start()
        keys = batch(number, n)[rank::world]
        counts.upsert(keys, np.ones_like(keys), "add")
        if number % 3 == 2:
            counts.save(folder, note=number + 1)
    check(counts, n)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def check(counts: wd.ShardedMap, n: int) -> None:
    expected = sum(np.bincount(batch(number, n), minlength=KEYS) for number in range(BATCHES))
    mine = np.arange(counts.rank, KEYS, counts.world)
    assert np.array_equal(counts.find(mine)[0], expected[mine])
    if counts.rank == 0:
        print(f"{BATCHES * n:,} keys are counted, in life {os.environ['TORCHELASTIC_RESTART_COUNT']} of the processes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", "--keys", type=int, default=200_000, help="keys of a batch")
    parser.add_argument("--ranks", type=int, default=3, help="processes")
    parser.add_argument("--kills", type=int, default=1, help="how often a process is killed")
    parser.add_argument("--seed", type=int, default=0, help="of which process is killed, and when")
    parser.add_argument("--folder", type=Path, help="of the checkpoint; for the processes that torchrun starts")
    given = parser.parse_args()
    if given.folder:
        return count(given.folder, given.n, given.kills, given.seed)
    with tempfile.TemporaryDirectory() as folder:
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={given.ranks}"]
        options = [f"--keys={given.n}", f"--kills={given.kills}", f"--seed={given.seed}", f"--folder={folder}"]
        command = [*torchrun, f"--max-restarts={given.kills}", __file__, *options]
        sys.exit(subprocess.run(command, check=False).returncode)


if __name__ == "__main__":
    main()
