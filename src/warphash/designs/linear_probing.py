"""Linear probing, bucket by bucket: see ``kernels/designs/linear_probing.cuh``."""

from .base import Design, Parameter

DESIGN = Design(
    name="linear_probing",
    aliases=("linear",),
    title="Linear probing",
    citation="the baseline Linear of Dynamic Hash Tables on GPUs, section 6.1",
    parameters=(
        Parameter("slots_per_bucket", 8, "slots that are probed at once; the paper's has 1", choices=(1, 8, 16, 32)),
        Parameter("probe_limit", 1 << 14, "slots in a row that a key may be in", bounds=(32, 1 << 31), of_paper=True),
    ),
    fields=lambda p: {"hashes": 1, "probe_limit": p["probe_limit"] // p["slots_per_bucket"]},
    default_load_factor=lambda p: 0.8,
    safe_load_factor=lambda p: 0.9,  # it holds more, but then an absent key is looked for in ever longer runs
    moves_keys=False,
    settles=True,
    probes_in_a_row=True,
    searches_until_unused=True,
    fills_first_bucket=lambda p: p["slots_per_bucket"] > 1,
)
