"""Lookups that PyTorch captures in CUDA graphs, and replays. `tests/table/test_captured.py` needs no GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from support.engines import missing
from warphash import CaptureError, DeviceError, DtypeError, HashMap, HashSet, MultiMap
from warphash.designs import registry

torch = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(bool(missing("cuda")), reason=missing("cuda")),
]

N = 1000
DESIGNS = [name for name in registry.names() if not registry.get(name).layout.composed]


def made(design: str = "auto", **options: Any) -> HashMap:
    """The squares of 0 to N - 1, with room for four times as many keys."""
    options = {"on_full": "raise", "capacity": 4 * N, **options}
    keys = np.arange(N)
    table = HashMap.from_arrays(keys, keys**2, design=design, device="cuda", **options)
    assert len(table) == N  # waits for the insert, as a capture needs
    return table


def graph_of(lookup: Callable[[Any], Any], keys: Any) -> tuple[Any, Any]:
    """A graph of one lookup of what is in ``keys`` when the graph is replayed; and where its answers go."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        lookup(keys)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        answers = lookup(keys)
    return graph, answers


def check_replays(graph: Any, keys: Any, values: Any, there: Any) -> None:
    """Replay a find with a default of -1 for other keys, three times. The last keys begin at 5,000."""
    for first in (0, 500, 5000):
        wanted = torch.arange(first, first + N)
        keys.copy_(wanted)
        graph.replay()
        assert torch.equal(values.cpu(), torch.where(wanted < N, wanted**2, -1))
        assert torch.equal(there.cpu(), wanted < N)


@pytest.mark.parametrize("design", DESIGNS)
def test_find_and_contains(design: str) -> None:
    table = made(design)
    keys = torch.arange(N, device="cuda")
    find, (values, found) = graph_of(lambda keys: table.find(keys, default=-1), keys)
    contains, there = graph_of(table.contains, keys)
    for first in (0, 500, 5000, 0):
        keys.copy_(torch.arange(first, first + N))
        find.replay()
        contains.replay()
        present = torch.arange(first, first + N) < N
        assert torch.equal(found.cpu(), present) and torch.equal(there.cpu(), present)
        assert torch.equal(values.cpu(), torch.where(present, torch.arange(first, first + N) ** 2, -1))


def test_verbs_that_write_to_given_tensors() -> None:
    table = made()
    keys = torch.arange(N, device="cuda")
    values, there = torch.empty_like(keys), torch.empty(N, dtype=torch.bool, device="cuda")
    table.find(keys)  # loads the kernel
    graph, answers = graph_of(lambda keys: table.find(keys, -1, out=values, found=there), keys)
    assert answers[0] is values and answers[1] is there
    check_replays(graph, keys, values, there)
    assert table.assign(keys, keys * 3, added=there) is there and there.all()
    answer, _ = table.find(keys, out=keys)  # over the keys
    assert answer is keys and torch.equal(keys.cpu(), 3 * torch.arange(5000, 5000 + N))


@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")
def test_a_plan() -> None:
    """Its calls in a graph and outside of one, on the current stream, into tensors of the caller."""
    table = made()
    keys = torch.arange(N, device="cuda")
    plan = table.plan(N, like=keys)
    values, there = torch.empty_like(keys), torch.empty(N, dtype=torch.bool, device="cuda")
    graph, answers = graph_of(lambda keys: plan.find(keys, -1, out=values, found=there), keys)
    assert answers[0] is values and answers[1] is there
    check_replays(graph, keys, values, there)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        added = plan.assign(keys, keys * 3, added=there)
        found = plan.find(keys)
    torch.cuda.current_stream().wait_stream(side)
    assert added is there and added.all() and found[1].all() and torch.equal(found[0], keys * 3)
    table.reserve(1000 * N)
    assert plan.contains(keys).all() and not table.captures_are_current()
    with pytest.raises(DeviceError, match="keys must be on cuda:0"):
        plan.find(keys.cpu())
    with pytest.raises(DtypeError, match="out must be int64, got float32"):
        plan.find(keys, out=values.float())
    with pytest.raises(CaptureError, match="only find and contains"), torch.cuda.graph(torch.cuda.CUDAGraph()):
        plan.insert(keys, keys)
    table.check()


def test_a_replay_sees_the_updates_before_it() -> None:
    table = made()
    keys = torch.arange(N, 2 * N, device="cuda")
    graph, (values, found) = graph_of(table.find, keys)
    graph.replay()
    assert not found.any()
    table.insert(keys, keys + 1)  # on the stream of the replays
    graph.replay()
    assert found.all() and torch.equal(values, keys + 1)
    table.upsert(keys, keys, "add")
    table.erase(keys[::2])
    graph.replay()
    assert torch.equal(found, (keys % 2) == 1) and torch.equal(values[1::2], 2 * keys[1::2] + 1)
    assert table.captures_are_current()


def test_a_graph_of_a_table_that_has_moved() -> None:
    table = made(on_full="grow")
    keys = torch.arange(N, device="cuda")
    graph, (values, found) = graph_of(table.find, keys)
    table.insert(torch.arange(N, 100 * N, device="cuda"), torch.arange(N, 100 * N, device="cuda"))
    assert not table.captures_are_current()
    graph.replay()  # answers what it likes, from memory that is still the table's
    torch.cuda.synchronize()
    graph, (values, found) = graph_of(table.find, keys)
    graph.replay()
    assert found.all() and torch.equal(values, keys**2)


def test_a_table_is_used_beside_a_capture() -> None:
    """What is not on the captured stream goes on: here, from memory of the host."""
    table, other = made(), made()
    keys, graph = torch.arange(N, device="cuda"), torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, capture_error_mode="relaxed"):
        values, _ = table.find(keys)
        assert other.find(np.arange(10))[1].all() and table.find(np.arange(10))[1].all()
    graph.replay()
    assert torch.equal(values, keys**2)
    assert table.insert(np.array([N]), np.array([1])).all()


UPDATES = {
    "insert": lambda table, keys: table.insert(keys, keys),
    "assign": lambda table, keys: table.assign(keys, keys),
    "upsert": lambda table, keys: table.upsert(keys, keys, "add"),
    "upsert in order": lambda table, keys: table.upsert(keys, keys, "last"),
    "find_or_insert": lambda table, keys: table.find_or_insert(keys, keys),
    "erase": lambda table, keys: table.erase(keys),
    "pop": lambda table, keys: table.pop(keys),
    "probe_counts": lambda table, keys: table.probe_counts(keys),
    "get item": lambda table, keys: table[keys],
    "set item": lambda table, keys: table.__setitem__(keys, keys),
    "delete item": lambda table, keys: table.__delitem__(keys),
}


@pytest.mark.parametrize("verb", UPDATES)
@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")
def test_every_other_verb_says_why_not(verb: str) -> None:
    table, keys = made(), torch.arange(N, device="cuda")
    torch.cuda.synchronize()
    with pytest.raises(CaptureError, match="only find and contains"), torch.cuda.graph(torch.cuda.CUDAGraph()):
        UPDATES[verb](table, keys)
    assert len(table) == N and torch.equal(table[keys], keys**2)
    table.check()


@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")
def test_lookups_that_no_graph_can_repeat() -> None:
    keys = torch.arange(N, device="cuda")
    narrow = keys.to(torch.int16)
    rows = keys.to(torch.int32)[:, None].expand(N, 3).contiguous()
    for table, asked in (
        (made(max_size=2 * N, capacity=None), keys),
        (made("slab", on_full="grow"), keys),
        (made("tiered", on_full="grow"), keys),
        (HashSet.from_arrays(narrow), narrow),
        (HashSet.from_arrays(rows), rows),
        (MultiMap.from_arrays(keys, keys, on_full="raise"), keys),
    ):
        torch.cuda.synchronize()
        with pytest.raises(CaptureError), torch.cuda.graph(torch.cuda.CUDAGraph()):
            table.contains(asked)
        assert table.contains(asked).all()
    pairs = MultiMap.from_arrays(keys, keys, design="slab", on_full="raise")
    assert len(pairs) == N
    graph, there = graph_of(pairs.contains, keys)
    graph.replay()
    assert there.all()


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_compiled_for_a_gpu(mode: str) -> None:
    """The compiler's own graphs leave the operators out, so they are right behind a table that grows."""
    from warphash.torch import TableHandle

    torch._dynamo.reset()
    handle = TableHandle(made(on_full="grow", capacity=N))

    @torch.compile(mode=mode)
    def step(keys: Any) -> Any:
        values, found = handle.find(keys * 2 // 2, -1)
        handle.insert(keys + N, keys)
        return values * 2, found, handle.contains(keys + N)

    for first in range(0, 20 * N, N):
        keys = torch.arange(first, first + N, device="cuda")
        values, found, there = step(keys)
        assert found.all() and there.all()
        assert torch.equal(values, 2 * keys**2 if first == 0 else 2 * (keys - N))
    assert len(handle.table) == 21 * N


def test_id_map_on_a_gpu() -> None:
    from warphash.torch import IdMap

    ids = IdMap(capacity=1).cuda()
    batch = torch.randint(-(2**62), 2**62, (64, 100), device="cuda")
    rows = ids(batch)
    assert rows.device == batch.device and torch.equal(ids.ids()[rows - ids.first_row], batch)
    assert torch.equal(rows.unique(), torch.arange(ids.first_row, ids.num_rows, device="cuda"))
    moved = ids.cpu().eval()
    assert torch.equal(moved(batch.cpu()), rows.cpu()) and moved.ids().device.type == "cpu"
    again = IdMap(device="cuda")
    again.load_state_dict(moved.state_dict())
    assert torch.equal(again.eval()(batch), rows)
