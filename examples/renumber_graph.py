"""Renumber the nodes of a graph: any 64-bit names to 0, 1, 2, … in the order in which they appear."""

import argparse

import numpy as np

import warphash


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=100_000, help="number of edges")
    parser.add_argument("--device", help="of the map; a GPU by default, if there is one")
    given = parser.parse_args()

    rng = np.random.default_rng(1)
    names = rng.integers(0, 2**63, size=given.n // 5 + 1, dtype=np.uint64)
    edges = names[rng.integers(0, len(names), size=(given.n, 2))]

    numbers, nodes = warphash.factorize(edges)

    known = warphash.HashMap("uint64", "int64", device=given.device)  # stays, where edges come in batches
    batches = [known.number(batch.ravel())[0].reshape(batch.shape) for batch in np.array_split(edges, 4)]

    place: dict[int, int] = {}
    expected = [place.setdefault(node, len(place)) for node in edges.ravel().tolist()]
    assert numbers.ravel().tolist() == expected and nodes.tolist() == list(place)
    assert np.array_equal(np.concatenate(batches), numbers) and len(known) == len(nodes)
    print(f"{len(edges):,} edges between {len(nodes):,} nodes; the last edge is {numbers[-1].tolist()}")


if __name__ == "__main__":
    main()
