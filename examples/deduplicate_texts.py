"""Keep the first of equal texts: of all at once, and of parts that come one after the other."""

import argparse

import numpy as np
import pyarrow as pa

import warphash


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=50_000, help="number of texts")
    n = parser.parse_args().n

    rng = np.random.default_rng(1)
    words = ["the", "a", "cat", "dog", "tree", "sees", "likes", "finds", "old", "new", "Ähre", "木"]
    texts = [" ".join(rng.choice(words, rng.integers(2, 6))) for _ in range(n)]
    documents = pa.table({"text": texts, "source": rng.integers(0, 5, n)})

    kept = warphash.drop_duplicates(documents, "text")

    seen = warphash.HashSet("str")
    parts = documents.to_batches(max_chunksize=max(1, n // 4))
    kept_of_parts = pa.Table.from_batches([part.filter(seen.insert(part["text"])) for part in parts])

    first: dict[str, int] = {}
    for row, text in enumerate(texts):
        first.setdefault(text, row)
    expected = documents.take(list(first.values()))
    assert kept.equals(expected) and kept_of_parts.equals(expected)
    print(f"{len(kept):,} of {n:,} texts are distinct")


if __name__ == "__main__":
    main()
