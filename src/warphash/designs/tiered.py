"""Two tiers: a table in the memory of the host or in a file, and its most asked-for pairs on the device."""

from .base import ALL_VERBS, Design, Parameter
from .layout import Tiers

WRITES = ("through", "back")
"""Whether an update of a pair that is on the device goes to its home at once, or with the next flush."""

DESIGN = Design(
    name="tiered",
    aliases=(),
    title="Tiered table",
    citation="HH Hash, section Future Work; admission: TinyLFU, Einziger et al., 2017",
    parameters=(
        Parameter("device_capacity", None, "pairs on the device; a tenth of capacity by default", bounds=(1, 1 << 40)),
        Parameter("write", "through", "to the home: at once, or back from the device with a flush", WRITES),
    ),
    fields=lambda _: {},
    default_load_factor=lambda _: 0.8,
    safe_load_factor=lambda _: 0.95,
    layout=Tiers(),
    moves_keys=True,
    settles=True,
    capabilities=ALL_VERBS | {"flush"},
    memories=("host", "file"),
)
