"""How long the lists of a table are, in closed form."""

from __future__ import annotations

import cmath
import math


def nodes_of_a_list(mean: float, pairs: int) -> float:
    """Mean number of nodes of ``pairs`` pairs of a list, one at least, whose length is of a Poisson distribution.

    By the generating function exp(mean (z - 1)) at the roots of one, which gives the length modulo ``pairs``: the last
    node of a list lacks as many as that is short of ``pairs``, and an empty list has a node too.
    """
    roots = [cmath.rect(1, 2 * math.pi * turn / pairs) for turn in range(pairs)]
    at_roots = [cmath.exp(mean * (root - 1)) for root in roots]
    lacking = 0.0
    for rest in range(1, pairs):
        chance = sum(at * root**-rest for at, root in zip(at_roots, roots, strict=True)).real / pairs
        lacking += chance * (pairs - rest)
    return (mean + lacking) / pairs + math.exp(-mean)
