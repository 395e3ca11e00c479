"""A design or task that lacks a member is refused by a message that names it (``core/concepts.cuh``)."""

from __future__ import annotations

import pytest

from support.engines import missing
from support.planting import planted
from warphash.designs import registry
from warphash.runtime.cuda.nvrtc import CompileError
from warphash.runtime.emulated.engine import EmulatedEngine
from warphash.runtime.engine import KernelSpec

pytestmark = pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")

SPEC = KernelSpec("power_of_two", 4, 4, 8)
TICKETS = KernelSpec("stadium", 4, 4, 1, layout=registry.get("stadium").layout)
REGION = "  WARPHASH_FN static i32 region(const Table&) { return 0; }\n  WARPHASH_FN static bool advance"
PARTS = "  static constexpr int kPartBytes = 256;  // a bucket of that size is read whole"
NEXT = "  WARPHASH_FN static const void* next(const TicketTable& t, const State& s) { return s.search.next(t); }"
ADVANCE = "WARPHASH_FN bool advance(const TicketTable& t, const Word& key) {"


@pytest.mark.parametrize(
    ("spec", "right", "wrong", "concept", "member"),
    [
        (SPEC, REGION, "  WARPHASH_FN static bool advance", "IsDesign", "D::region"),
        (SPEC, "kMovesKeys = false, kReadsFirst = true", "kMovesKeys = false", "IsDesign", "D::kReadsFirst"),
        (SPEC, PARTS, "//", "IsProbing", "Task::kPartBytes"),
        (TICKETS, NEXT, "", "IsStepping", "Task::next"),
        (TICKETS, ADVANCE, ADVANCE.replace("advance", "go"), "HasWalk", "walk.advance"),
    ],
    ids=["function", "constant", "task", "step", "walk"],
)
def test_a_missing_member_is_named(spec: KernelSpec, right: str, wrong: str, concept: str, member: str) -> None:
    engine = EmulatedEngine(lambda source: planted(source, right, wrong))
    with pytest.raises(CompileError) as caught:
        engine.program(spec)
    assert concept in str(caught.value) and member in str(caught.value)
