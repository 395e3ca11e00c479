"""All kinds of examples, and how many of each are tried.

The shares are those of 20,000 examples, which take 20 to 25 minutes on two cores.
"""

from __future__ import annotations

from fuzz.driver import Kind
from fuzz.kinds import attributes, crafted, forks, kills, links, memory, order, overlaps, shared_buffers, verbs

__all__ = ["KINDS"]

KINDS = {
    "verbs": Kind(verbs.run, share=10_000, batch=50, limit_s=60),
    "attributes": Kind(attributes.run, share=2500, batch=50, limit_s=30),
    "order": Kind(order.run, share=2000, batch=50, limit_s=30),
    "overlaps": Kind(overlaps.run, share=2000, batch=50, limit_s=15),
    "memory": Kind(memory.run, share=1500, batch=20, limit_s=60),
    "crafted": Kind(crafted.run, share=400, batch=10, limit_s=60),
    "links": Kind(links.run, share=500, batch=1, limit_s=90),
    "kills": Kind(kills.run, share=500, batch=1, limit_s=60),
    "forks": Kind(forks.run, share=300, batch=1, limit_s=60),
    "shared_buffers": Kind(shared_buffers.run, share=300, batch=5, limit_s=20),
}
