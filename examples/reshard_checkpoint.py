"""Save a sharded map by torch.distributed.checkpoint, and load it by another number of processes. Starts torchrun."""

import argparse
import subprocess
import sys
import tempfile

import torch
import torch.distributed
import torch.distributed.checkpoint

import warphash.distributed as wd


def save(path: str, n: int) -> None:
    table = wd.ShardedMap("int64", "int64")
    mine = torch.arange(table.rank, n, table.world)
    table.insert(mine, mine * mine)
    torch.distributed.checkpoint.save({"step": torch.tensor(7), "table": table}, checkpoint_id=path)


def load(path: str, n: int) -> None:
    table = wd.ShardedMap("int64", "int64")
    state = {"step": torch.tensor(0), "table": table}
    torch.distributed.checkpoint.load(state, checkpoint_id=path)
    sought = torch.arange(n + 10)
    squares, found = table.find(sought)
    assert (found == (sought < n)).all() and (squares == torch.where(found, sought * sought, 0)).all()
    assert state["step"] == 7 and table.total() == n
    if table.rank == 0:
        print(f"{table.world} processes have loaded {n:,} keys")


def torchrun(ranks: int, verb: str, path: str, n: int) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", __file__]
    if code := subprocess.run([*command, f"--keys={n}", f"--{verb}={path}"], check=False).returncode:
        sys.exit(code)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", "--keys", type=int, default=200_000)
    parser.add_argument("--save", help="a path; for the processes that torchrun starts")
    parser.add_argument("--load", help="the same")
    given = parser.parse_args()
    if not (given.save or given.load):
        with tempfile.TemporaryDirectory() as folder:
            torchrun(3, "save", folder, given.n)
            return torchrun(2, "load", folder, given.n)
    wd.init("gloo")
    if given.save:
        save(given.save, given.n)
    else:
        load(given.load, given.n)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
