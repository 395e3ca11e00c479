"""Train embeddings of arbitrary ids on two processes, and load them on three. Starts itself by torchrun."""

import argparse
import subprocess
import sys
import tempfile

import torch
import torch.distributed
import torch.distributed.checkpoint

import warphash.distributed as wd

USERS, ITEMS, BATCH, WIDTH = 400, 300, 512, 16

torch.manual_seed(1)  # what all processes know alike
user_ids, item_ids = (torch.randint(-(2**62), 2**62, (n,)) for n in (USERS, ITEMS))
user_taste, item_taste = (torch.randn(n, 4) for n in (USERS, ITEMS))


def ratings(n: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Users, two items that each of them was shown, and what the user thinks of each: +1 or -1."""
    user, item = torch.randint(USERS, (n,)), torch.randint(ITEMS, (n, 2))
    opinion = ((user_taste[user][:, None] * item_taste[item]).sum(-1) > 0).float() * 2 - 1
    return user_ids[user], item_ids[item], opinion


class Factors(torch.nn.Module):
    """A vector for each user and each item, on the process that owns it."""

    def __init__(self) -> None:
        super().__init__()
        self.users, self.items = wd.ShardedEmbedding(WIDTH), wd.ShardedEmbedding(WIDTH)

    def forward(self, user: torch.Tensor, item: torch.Tensor) -> torch.Tensor:
        return (self.users(user)[:, None] * self.items(item)).sum(-1)


def train(path: str, n: int) -> None:
    model = Factors()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.5)
    model.users.add_to(optimizer)  # which gets the parameters that new ids bring
    model.items.add_to(optimizer)
    torch.manual_seed(model.users.rank)  # each process has ratings of its own
    losses = []
    for _ in range(n // BATCH // model.users.world):
        user, item, opinion = ratings(BATCH)
        loss = torch.nn.functional.soft_margin_loss(model(user, item), opinion)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    torch.distributed.checkpoint.save({"model": model}, checkpoint_id=path)
    if model.users.rank == 0:
        print(f"loss {losses[0]:.2f} -> {losses[-1]:.2f} on each of {model.users.world} processes")


def evaluate(path: str) -> None:
    model = Factors().eval()
    torch.distributed.checkpoint.load({"model": model}, checkpoint_id=path)
    user, item, opinion = ratings(4 * BATCH)
    with torch.no_grad():
        right = (model(user, item) * opinion > 0).float().mean().item()
        assert not model.users(torch.tensor([12345])).any()  # an id that training has not seen
    assert right > 0.7
    users, items = model.users.total(), model.items.total()
    if model.users.rank == 0:
        print(f"{model.users.world} processes have {users} users and {items} items, and guess {right:.0%} right")


def torchrun(ranks: int, *options: str) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", __file__]
    if code := subprocess.run([*command, *options], check=False).returncode:
        sys.exit(code)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", "--ratings", type=int, default=200_000, help="number of ratings")
    parser.add_argument("--train", help="a path; for the processes that torchrun starts")
    parser.add_argument("--evaluate", help="the same")
    given = parser.parse_args()
    if not (given.train or given.evaluate):
        with tempfile.TemporaryDirectory() as folder:
            torchrun(2, f"--train={folder}", f"--ratings={given.n}")
            return torchrun(3, f"--evaluate={folder}")
    wd.init("gloo")
    if given.train:
        train(given.train, given.n)
    else:
        evaluate(given.evaluate)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
