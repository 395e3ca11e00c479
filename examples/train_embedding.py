"""Train embeddings of arbitrary 64-bit identifiers, which become known as batches come. Needs PyTorch."""

import argparse

import torch

from warphash.torch import IdMap

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--n", type=int, default=150_000, help="number of ratings")
parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", help="of the training")
given = parser.parse_args()

USERS, ITEMS, BATCH, WIDTH = 400, 300, 1024, 16
torch.manual_seed(1)


class Factors(torch.nn.Module):
    """A vector for each identifier. Row 0 is for identifiers that training has not seen."""

    def __init__(self) -> None:
        super().__init__()
        self.ids = IdMap(first_row=1, unknown=0)
        self.rows = torch.nn.Embedding(64, WIDTH)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        rows = self.ids(ids)
        self.make_room()
        return self.rows(rows)

    def make_room(self) -> None:
        """Double the rows as often as the identifiers need, and keep the ones that are trained."""
        while self.ids.num_rows > self.rows.num_embeddings:
            old = self.rows
            self.rows = torch.nn.Embedding(2 * old.num_embeddings, WIDTH, device=old.weight.device)
            with torch.no_grad():
                self.rows.weight[: old.num_embeddings] = old.weight


def ratings(n: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Users, two items that each of them was shown, and what the user thinks of each: +1 or -1."""
    user, item = torch.randint(USERS, (n,), device=given.device), torch.randint(ITEMS, (n, 2), device=given.device)
    opinion = ((user_taste[user][:, None] * item_taste[item]).sum(-1) > 0).float() * 2 - 1
    return user_ids[user], item_ids[item], opinion


user_ids, item_ids = (torch.randint(-(2**62), 2**62, (n,), device=given.device) for n in (USERS, ITEMS))
user_taste, item_taste = (torch.randn(n, 4, device=given.device) for n in (USERS, ITEMS))
users, items = Factors().to(given.device), Factors().to(given.device)

losses = []
for _ in range(given.n // BATCH):
    user, item, opinion = ratings(BATCH)
    guess = (users(user)[:, None] * items(item)).sum(-1)  # identifiers of shape (n,) and (n, 2)
    loss = torch.nn.functional.soft_margin_loss(guess, opinion)
    loss.backward()
    with torch.no_grad():
        for parameter in (*users.parameters(), *items.parameters()):
            parameter -= 200 * parameter.grad
            parameter.grad = None
    losses.append(loss.item())

checkpoint, restored = users.state_dict(), Factors().eval()  # wherever training ran, restored on the CPU
restored.rows = torch.nn.Embedding(*checkpoint["rows.weight"].shape)
restored.load_state_dict(checkpoint)
stranger = torch.tensor([12345])
assert torch.equal(restored(user_ids.cpu()), users.eval()(user_ids).cpu())
assert torch.equal(restored(stranger)[0], restored.rows.weight[0])
assert losses[-1] < 0.7 * losses[0]
print(f"loss {losses[0]:.2f} -> {losses[-1]:.2f}, {users.ids.num_rows - 1} users, {items.ids.num_rows - 1} items")
