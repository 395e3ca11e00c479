"""Expected lengths of a table's lists, in closed form."""

from __future__ import annotations

import cmath
import math


def nodes_of_a_list(mean: float, pairs: int) -> float:
    """Mean number of nodes of a list whose length has a Poisson distribution. A node holds ``pairs`` pairs.

    The generating function exp(mean (z - 1)), at the ``pairs``-th roots of one, gives the distribution of the length
    modulo ``pairs``, and so the mean number of free places in the last node. An empty list has a node too.
    """
    roots = [cmath.rect(1, 2 * math.pi * turn / pairs) for turn in range(pairs)]
    at_roots = [cmath.exp(mean * (root - 1)) for root in roots]
    lacking = 0.0
    for rest in range(1, pairs):
        chance = sum(at * root**-rest for at, root in zip(at_roots, roots, strict=True)).real / pairs
        lacking += chance * (pairs - rest)
    return (mean + lacking) / pairs + math.exp(-mean)
