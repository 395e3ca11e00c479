"""`ShardedEmbedding` beside one ``torch.nn.Embedding`` that has room for all ids and sees the batches of all ranks."""

from __future__ import annotations

import copy
import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .ranks import Ranks
from .test_checkpoint import group_of
from .test_failures import FAILED, failed, no_memory, raising

WIDTH, IDS, STEPS = 3, 160, 8
SIZES = ((0, 40, 7), (30, 0, 1), (5, 60, 20))
"""Of the batches of three ranks, in turn."""

OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "sgd": ("SGD", {"lr": 0.01}),
    "momentum": ("SGD", {"lr": 0.01, "momentum": 0.9}),
    "adam": ("Adam", {"lr": 0.1}),
    "adagrad": ("Adagrad", {"lr": 0.1, "initial_accumulator_value": 0.5}),
    "sparse adam": ("SparseAdam", {"lr": 0.1}),
}


def all_ids() -> Any:
    import torch

    return torch.arange(IDS) * 1_000_003**2 - 5


def batches(step: int, world: int) -> list[tuple[Any, Any]]:
    """The numbers of the ids of each rank: of two shapes, for two lookups. More ids come up from step to step.

    Three batches are dealt to the ranks, so all ranks together have the same ones, however many ranks there are.
    """
    import torch

    chance = np.random.default_rng(step)
    end = min(IDS, 12 * (step + 1))
    dealt = [(chance.integers(0, end, n), chance.integers(0, end, (n, 2))) for n in SIZES[step % len(SIZES)]]
    made = [[np.concatenate(parts) for parts in zip(*dealt[rank::world], strict=True)] for rank in range(world)]
    return [(torch.from_numpy(first), torch.from_numpy(second)) for first, second in made]


def loss_of(vectors: Any, numbers: tuple[Any, Any]) -> Any:
    """A loss by two lookups of one module."""
    first, second = (vectors(each) for each in numbers)
    return (((first[:, None] * second).sum(-1) - numbers[1] % 7) ** 2).sum()


def make(world: int, optimizer: str, **options: Any) -> tuple[Any, Any]:
    import torch

    import warphash.distributed as wd

    options = {"capacity": 1, "dtype": torch.float64, "sparse": optimizer == "sparse adam"} | options
    embedding = wd.ShardedEmbedding(WIDTH, group=group_of(world), **options)
    name, settings = OPTIMIZERS[optimizer]
    made = getattr(torch.optim, name)(embedding.parameters(), **settings)
    embedding.add_to(made)
    return embedding, made


def train(embedding: Any, optimizer: Any, steps: range) -> list[float]:
    losses = []
    for step in steps:
        mine = batches(step, embedding.world)[embedding.rank]
        loss = loss_of(lambda numbers: embedding(all_ids()[numbers]), mine)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def expected(world: int, optimizer: str, steps: int, divisor: int = 1) -> tuple[Any, Any]:
    """The losses of each rank at each step, and the vectors of all ids, by one process alone."""
    import torch

    from warphash.distributed.vectors import first_vectors

    whole = torch.nn.Embedding(IDS, WIDTH, dtype=torch.float64, sparse=optimizer == "sparse adam")
    with torch.no_grad():
        whole.weight.copy_(first_vectors(all_ids(), WIDTH, 0))
    name, settings = OPTIMIZERS[optimizer]
    made, losses = getattr(torch.optim, name)(whole.parameters(), **settings), []
    for step in range(steps):
        of_ranks = [loss_of(whole, numbers) for numbers in batches(step, world)]
        made.zero_grad()
        (sum(of_ranks) / divisor).backward()
        made.step()
        losses.append([loss.item() for loss in of_ranks])
    return np.array(losses), whole.weight.detach()


def check(embedding: Any, vectors: Any) -> None:
    """Compare the vectors of all ids that were seen, as all ranks find them, and those of this rank's own."""
    import torch

    embedding.eval()
    seen = torch.unique(torch.cat([part.reshape(-1) for step in range(STEPS) for part in _parts(step, embedding)]))
    assert embedding.total() == len(seen)
    with torch.no_grad():
        torch.testing.assert_close(embedding(all_ids()[seen]), vectors[seen], rtol=1e-9, atol=1e-9)
    embedding.train()
    ids, own = embedding.to_arrays()
    torch.testing.assert_close(own, vectors[torch.searchsorted(all_ids(), ids)], rtol=1e-9, atol=1e-9)


def _parts(step: int, embedding: Any) -> list[Any]:
    return [part for both in batches(step, embedding.world) for part in both]


# ---- training
def train_as_one(world: int, optimizer: str, options: dict[str, Any]) -> int:
    if group_of(world) is None:
        return 0
    embedding, made = make(world, optimizer, **options)
    losses, vectors = expected(world, optimizer, STEPS, world if options.get("gradients") == "mean" else 1)
    np.testing.assert_allclose(train(embedding, made, range(STEPS)), losses[:, embedding.rank], rtol=1e-9)
    check(embedding, vectors)
    return len(list(embedding.parameters()))


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("world", [1, 2, 3])
def test_training_is_that_of_one_process(ranks: Ranks, world: int, optimizer: str) -> None:
    made = ranks.run(train_as_one, world, optimizer, {})
    assert all(2 < blocks <= 2 + math.log2(IDS) for blocks in made[:world]), "rows are to double, and did not"


def test_gradients_of_the_mean_of_losses(ranks: Ranks) -> None:
    ranks.run(train_as_one, 3, "adam", {"gradients": "mean"})


def train_in_small_steps() -> None:
    from warphash.distributed import embedding

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedding, "_CHUNK", 4 * WIDTH)
        train_as_one(3, "sparse adam", {"piece_bytes": 300})


def test_many_rounds_and_many_chunks_of_new_vectors(ranks: Ranks) -> None:
    ranks.run(train_in_small_steps)


def train_in_16_bits(name: str) -> None:
    import torch

    import warphash.distributed as wd

    embedding = wd.ShardedEmbedding(WIDTH, dtype=getattr(torch, name), initial=lambda ids: torch.ones(len(ids), WIDTH))
    vectors = embedding(torch.tensor([[7, 9]]).expand(300, 2))
    assert vectors.dtype == getattr(torch, name) and (vectors == 1).all()
    vectors[:, 0].sum().backward()
    rows = embedding.local.find(np.array([7, 9]))[0]
    grads = [parameter.grad[rows] for parameter in embedding.parameters()]
    if 7 in embedding.local:
        assert (grads[0][0] == 900).all(), "sums in 16 bits stop at 256"
    if 9 in embedding.local:
        assert not grads[0][1].any()


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_gradients_of_16_bits_are_summed_in_32(ranks: Ranks, name: str) -> None:
    ranks.run(train_in_16_bits, name)


@pytest.mark.parametrize(("name", "large"), [("float16", 2048), ("bfloat16", 256)])
def test_gradients_of_several_rounds_are_summed_in_32_bits(name: str, large: int) -> None:
    torch = pytest.importorskip("torch")
    from warphash.distributed.vectors import Gradients

    blocks = [torch.zeros(2, 1, dtype=getattr(torch, name)) for _ in range(2)]
    gradients = Gradients(blocks, sparse=False)
    for number in (large, 1, 1):
        gradients.add(torch.tensor([-1, 3]), torch.full((2, 1), number, dtype=blocks[0].dtype))
    made = gradients.made()
    assert [each.tolist() for each in made] == [[[0], [0]], [[0], [large + 2]]] and made[1].dtype == blocks[1].dtype


def differentiate() -> list[bool]:
    import torch
    import torch.distributed as dist

    import warphash.distributed as wd

    alone = [dist.new_group([rank]) for rank in range(dist.get_world_size())][dist.get_rank()]
    embedding = wd.ShardedEmbedding(2, dtype=torch.float64, capacity=1, group=alone)
    ids = torch.tensor([[5, 6], [5, 8], [6, 6]])
    embedding(ids[:1])
    embedding(ids)
    blocks = tuple(embedding.parameters())
    return [torch.autograd.gradcheck(lambda *_: embedding(ids).sin(), blocks), len(blocks) == 3]


def test_gradcheck(ranks: Ranks) -> None:
    assert ranks.run(differentiate) == [[True, True]] * 3


def train_beside_data_parallel() -> None:
    import torch

    import warphash.distributed as wd

    batch = torch.arange(12).view(3, 4) % 7
    torch.manual_seed(3)
    whole, dense = torch.nn.Embedding(7, WIDTH), torch.nn.Linear(WIDTH, 1)
    beside, first = torch.nn.parallel.DistributedDataParallel(copy.deepcopy(dense)), copy.deepcopy(whole)
    embedding = wd.ShardedEmbedding(WIDTH, initial=first, gradients="mean")
    modules = ((whole, dense, batch), (embedding, beside, batch[embedding.rank]))
    optimizers = [torch.optim.SGD([*module.parameters(), *head.parameters()], lr=0.5) for module, head, _ in modules]
    for _ in range(3):
        for (module, head, mine), optimizer in zip(modules, optimizers, strict=True):
            optimizer.zero_grad()
            (head(module(mine)) ** 2).mean().backward()
            optimizer.step()
    torch.testing.assert_close(beside.module.weight, dense.weight)
    torch.testing.assert_close(embedding(torch.arange(7)), whole.weight)


def test_beside_data_parallel(ranks: Ranks) -> None:
    ranks.run(train_beside_data_parallel)


# ---- evaluation, ids, first vectors
def evaluate() -> None:
    import torch

    import warphash.distributed as wd

    embedding = wd.ShardedEmbedding(WIDTH)
    known = embedding(torch.arange(10)).detach()
    embedding.eval()
    unknown = embedding(torch.arange(8, 12))
    assert torch.equal(unknown[:2], known[8:]) and not unknown[2:].any() and embedding.total() == 10
    embedding.train()
    embedding(torch.arange(10, 12))
    assert embedding.total() == 12
    unknown.sum().backward()
    for id in range(8, 12):
        if id in embedding.local:
            gradient = next(iter(embedding.parameters())).grad[embedding.local[id]]
            assert (gradient == (3 if id < 10 else 0)).all(), "an unknown id has a gradient"


def test_unknown_ids_in_evaluation(ranks: Ranks) -> None:
    ranks.run(evaluate)


def look_up_ids_of(name: str) -> None:
    import torch

    import warphash.distributed as wd

    dtype = getattr(torch, name)
    least, most = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    ids = torch.from_numpy(np.array([most, least, 1, 7], name))
    embedding = wd.ShardedEmbedding(WIDTH, id_dtype=dtype)
    vectors = embedding(ids)
    assert embedding(ids[2]).shape == (WIDTH,) and embedding(ids.view(2, 1, 2)).shape == (2, 1, 2, WIDTH)
    assert torch.equal(embedding(ids.view(2, 2).mT), vectors.view(2, 2, WIDTH).mT.mT.transpose(0, 1))
    narrow = torch.tensor([1, 7], dtype=torch.uint8 if least == 0 else torch.int8)
    assert torch.equal(embedding(narrow), vectors[2:])
    own, held = embedding.to_arrays()
    assert own.dtype == dtype and embedding.total() == 4
    assert {id: vector.tolist() for id, vector in zip(own.tolist(), held, strict=True)} == {
        id: vector.tolist() for id, vector in zip(ids.tolist(), vectors, strict=True) if id in own.tolist()
    }


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_ids_of_every_type(ranks: Ranks, name: str) -> None:
    ranks.run(look_up_ids_of, name)


def test_first_vectors_are_normal_numbers_of_their_ids() -> None:
    torch = pytest.importorskip("torch")
    from warphash.distributed.vectors import first_vectors

    ids = torch.arange(-2_000, 2_000)
    made = first_vectors(ids, 50, 0)
    assert torch.equal(first_vectors(ids.flip(0), 50, 0).flip(0), made)
    assert made.isfinite().all() and len(made.unique()) == made.numel()
    assert abs(made.mean()) < 0.01 and abs(made.std() - 1) < 0.01
    assert abs(made.mean(0)).max() < 0.1 and abs(made.mean(1)).max() < 0.8
    assert abs(torch.corrcoef(made.T) - torch.eye(50)).max() < 0.1
    assert abs((made > 1).double().mean() - 0.1587) < 0.005
    other = first_vectors(ids, 50, 1)
    assert not torch.isin(other, made).any()


@pytest.mark.parametrize("seed", [2, 5, -3, (1 << 63) - 1, -(1 << 63), 1 << 64 | 6])
def test_any_seed_makes_first_vectors(seed: int) -> None:
    torch = pytest.importorskip("torch")
    from warphash.distributed.vectors import first_vectors

    ids = torch.arange(20_000)
    made = first_vectors(ids, 4, seed)
    assert not torch.equal(made, first_vectors(ids, 4, 1))
    assert abs(made.mean()) < 0.02 and abs(made.std() - 1) < 0.02


# ---- states
def save_while_training(path: str, world: int, optimizer: str) -> None:
    import torch.distributed.checkpoint as dcp

    if group := group_of(world):
        embedding, made = make(world, optimizer)
        train(embedding, made, range(STEPS // 2))
        dcp.save({"model": embedding}, checkpoint_id=path, process_group=group)


def go_on_training(path: str, world: int, optimizer: str) -> None:
    import torch.distributed.checkpoint as dcp

    if group := group_of(world):
        embedding, made = make(world, optimizer)
        train(embedding, made, range(STEPS // 4))  # what the state replaces
        dcp.load({"model": embedding}, checkpoint_id=path, process_group=group)
        losses = train(embedding, made, range(STEPS // 2, STEPS))
        all_losses, vectors = expected(world, optimizer, STEPS)
        np.testing.assert_allclose(losses, all_losses[STEPS // 2 :, embedding.rank], rtol=1e-9)
        check(embedding, vectors)


@pytest.mark.parametrize(
    ("saved_by", "loaded_by", "optimizer"),
    [(3, 3, "adam"), (3, 2, "adagrad"), (2, 3, "momentum"), (1, 3, "sparse adam"), (2, 1, "sgd")],
)
def test_training_goes_on_from_a_checkpoint(
    ranks: Ranks, tmp_path: Path, saved_by: int, loaded_by: int, optimizer: str
) -> None:
    ranks.run(save_while_training, str(tmp_path), saved_by, optimizer)
    ranks.run(go_on_training, str(tmp_path), loaded_by, optimizer)


def load_without_optimizer() -> None:
    """A state without rows of an optimizer: training begins, from the vectors of the state."""
    import torch

    import warphash.distributed as wd

    untrained = wd.ShardedEmbedding(WIDTH, dtype=torch.float64)
    untrained(all_ids()[:12])
    for name in ("adagrad", "adam"):
        embedding, made = make(3, name)
        if name == "adagrad":  # whose state is there before the first step
            train(embedding, made, range(2))
        embedding.load_state_dict(untrained.state_dict())
        np.testing.assert_allclose(
            train(embedding, made, range(STEPS)), expected(3, name, STEPS)[0][:, embedding.rank], rtol=1e-9
        )
        check(embedding, expected(3, name, STEPS)[1])


def test_a_state_without_what_an_optimizer_keeps(ranks: Ranks) -> None:
    ranks.run(load_without_optimizer)


def load_merged() -> None:
    import torch
    import torch.distributed as dist

    import warphash.distributed as wd

    embedding, made = make(3, "adam")
    train(embedding, made, range(STEPS))
    every: list[Any] = [None] * 3
    dist.all_gather_object(every, embedding.state_dict())
    if group := group_of(1):
        whole = torch.nn.ModuleDict({"users": wd.ShardedEmbedding(WIDTH, dtype=torch.float64, group=group)})
        whole.load_state_dict({f"users.{name}": entry for state in every for name, entry in state.items()})
        check(whole["users"], expected(3, "adam", STEPS)[1])


def test_states_of_all_ranks_together_are_a_state_of_any_rank(ranks: Ranks) -> None:
    ranks.run(load_merged)


def refuse_state(kind: str) -> str:
    import torch

    embedding, made = make(3, "adam")
    train(embedding, made, range(STEPS))
    given = {"width": 2, "type": WIDTH, "ids": WIDTH}.get(kind)
    state = dict(embedding.state_dict())
    if given:
        import warphash.distributed as wd

        options: dict[str, Any] = {"type": {"dtype": torch.float32}, "ids": {"id_dtype": torch.uint64}}.get(kind, {})
        state = wd.ShardedEmbedding(given, **({"dtype": torch.float64} | options)).state_dict()
    elif embedding.rank == FAILED:
        name = next(name for name, entry in state.items() if isinstance(entry, bytes) and len(entry) > 32)
        if kind == "altered":
            state[name] = state[name][:-1] + bytes([state[name][-1] ^ 1])
        elif kind == "lacks":
            del state[name]
        elif kind == "about":
            state["about"] = "{}"
        else:
            state["weight"] = 5
    before = [parameter.clone() for parameter in embedding.parameters()]
    try:
        embedding.load_state_dict(state)
    except RuntimeError as error:
        assert kind == "unexpected" or all(map(torch.equal, before, embedding.parameters()))
        check(embedding, expected(3, "adam", STEPS)[1])
        return str(error)
    check(embedding, expected(3, "adam", STEPS)[1])
    return "nothing"


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("width", "must have 3 numbers of float64 for ids of int64, got 2 of 'float64' for 'int64'"),
        ("type", "got 3 of 'float32'"),
        ("ids", "for 'uint64'"),
        ("altered", "rank 1: CorruptFile: shard"),
        ("lacks", "rank 1: ParameterError: the state lacks shard"),
        ("about", "rank 1: CorruptFile: the state must be that of a ShardedEmbedding"),
    ],
)
def test_a_state_that_is_refused_on_all_ranks(ranks: Ranks, kind: str, said: str) -> None:
    made = ranks.run(refuse_state, kind)
    assert made[0] == made[1] == made[2]
    assert said in made[0]


def test_an_entry_that_is_not_of_a_state(ranks: Ranks) -> None:
    made = ranks.run(refuse_state, "unexpected")
    assert made[0] == made[2] == "nothing" and "Unexpected key(s) in state_dict" in made[FAILED]


# ---- calls that fail on one rank
def give_wrong_ids() -> list[dict[int, str]]:
    import torch

    embedding, _ = make(3, "sgd")
    right = torch.arange(20)
    wrong = [
        right.double(),
        right.tolist(),
        torch.zeros(3, dtype=torch.uint64),
        torch.zeros(3, dtype=torch.bool),
        torch.zeros(3, dtype=torch.int64, device="meta"),
        torch.zeros(3, dtype=torch.int64).to_sparse(),
    ]
    made = []
    for each in wrong:
        made.append(failed(lambda given=each: embedding(given if embedding.rank == FAILED else right))[1])  # type: ignore[misc]
        assert embedding.total() == 0
    embedding.train(embedding.rank != FAILED)
    made.append(failed(lambda: embedding(right))[1])
    embedding.train()
    if embedding.rank == FAILED:
        embedding.float()
    made.append(failed(lambda: embedding(right))[1])
    embedding.double()
    assert embedding(right).shape == (20, WIDTH) and embedding.total() == 20
    return made


def test_wrong_ids_on_one_rank_all_ranks_hear(ranks: Ranks) -> None:
    made = ranks.run(give_wrong_ids)
    assert made[0] == made[1] == made[2]
    assert [list(failures) for failures in made[0]] == [[FAILED]] * 6 + [[0, 1, 2]] * 2
    texts = [failures[FAILED] for failures in made[0]]
    kinds = ["DtypeError"] * 4 + ["ShapeError"] * 2
    assert [text.split(":")[0] for text in texts[:-2]] == kinds
    assert "evaluation" in texts[-2] and "training" in made[0][-2][0]
    assert "float32" in texts[-1] and "float64" in made[0][-1][0]


def make_wrong_modules() -> list[list[int]]:
    import torch

    import warphash.distributed as wd

    made = []
    for options in (
        {"embedding_dim": 0},
        {"dtype": torch.int32},
        {"id_dtype": torch.float32},
        {"id_dtype": "int64"},
        {"gradients": "max"},
        {"capacity": -1},
        {"embedding_dim": 5},
        {"sparse": True},
        {"seed": 1},
    ):
        given = {"embedding_dim": 4} | (options if group_of(3) and torch.distributed.get_rank() == FAILED else {})
        made.append(list(failed(lambda given=given: wd.ShardedEmbedding(**given))[1]))  # type: ignore[misc]
    return made


def test_ranks_that_make_different_modules(ranks: Ranks) -> None:
    assert ranks.run(make_wrong_modules) == [[[FAILED]] * 6 + [[0, 1, 2]] * 3] * 3


def differentiate_in_another_order() -> list[int]:
    import torch

    embedding, _ = make(3, "sgd")
    first, second = embedding(torch.arange(5)), embedding(torch.arange(3, 9))
    in_order = [first.sum(), second.sum()]
    wrong_way = failed(lambda: in_order[embedding.rank == FAILED].backward(retain_graph=True))[1]
    assert all(parameter.grad is None for parameter in embedding.parameters())
    left_out = failed(lambda: embedding(torch.arange(3)) if embedding.rank == FAILED else first.sum().backward())[1]
    (first.sum() + second.sum()).backward()
    total = torch.tensor(
        [sum(parameter.grad.sum() for parameter in embedding.parameters() if parameter.grad is not None)]
    )
    torch.distributed.all_reduce(total)
    assert total == 3 * 11 * WIDTH
    return [*wrong_way, *left_out]


def test_backward_passes_in_another_order_all_ranks_refuse(ranks: Ranks) -> None:
    assert ranks.run(differentiate_in_another_order) == [[0, 1, 2] * 2] * 3


def refuse_each_allocation(owner: str, name: str) -> int:
    """Refuse one allocation after the other on one rank, until two steps need no more."""
    import torch

    from warphash.distributed import channel, embedding, vectors
    from warphash.errors import CollectiveError

    owners: dict[str, Any] = {
        "Channel": channel.Channel,
        "ShardedEmbedding": embedding.ShardedEmbedding,
        "Gradients": vectors.Gradients,
    }
    for at in itertools.count(1):
        module, optimizer = make(3, "adam", piece_bytes=500)
        with pytest.MonkeyPatch.context() as patch:
            if module.rank == FAILED:
                patch.setattr(owners[owner], name, raising(at, no_memory)(getattr(owners[owner], name)))
            try:
                train(module, optimizer, range(2))
                return at - 1
            except CollectiveError as error:
                assert list(error.failures) == [FAILED] and error.failures[FAILED].startswith("MemoryError")
        numbers = batches(0, 3)[module.rank][1]
        again = module(all_ids()[numbers])
        assert len(torch.unique(again.view(-1, WIDTH), dim=0)) == len(numbers.unique())
    return 0


@pytest.mark.parametrize(
    ("owner", "name", "least"),
    [("Channel", "memory", 20), ("ShardedEmbedding", "_new_block", 1), ("Gradients", "made", 4)],
)
def test_memory_that_is_refused_on_one_rank(ranks: Ranks, owner: str, name: str, least: int) -> None:
    made = ranks.run(refuse_each_allocation, owner, name)
    assert made[0] == made[1] == made[2] >= least


# ---- what a rank does alone
def ask_alone() -> None:
    import torch

    from warphash import ParameterError, UnsupportedVerb

    embedding, optimizer = make(3, "adam")
    if embedding.rank == 0:
        assert "rank 0 of 3 with 0 ids" in repr(embedding)
        with pytest.raises(UnsupportedVerb, match="load_state_dict"):
            copy.deepcopy(embedding)
        with pytest.raises(ParameterError, match=r"embedding\.parameters"):
            embedding.add_to(torch.optim.SGD([torch.nn.Parameter(torch.zeros(3))], lr=1.0))
    train(embedding, optimizer, range(3))
    late = torch.optim.SGD([next(iter(embedding.parameters()))], lr=1.0)
    embedding.add_to(late)
    embedding.add_to(late)
    assert list(map(id, late.param_groups[0]["params"])) == list(map(id, embedding.parameters()))
    with torch.no_grad():
        assert not embedding(torch.arange(3)).requires_grad
    embedding.requires_grad_(False)
    assert not embedding(torch.arange(1_000)).requires_grad
    assert not any(parameter.requires_grad for parameter in embedding.parameters())


def test_what_is_not_collective(ranks: Ranks) -> None:
    ranks.run(ask_alone)
