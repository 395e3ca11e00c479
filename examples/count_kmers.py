"""Count the substrings of length 12 of a sequence, two bits a letter."""

import numpy as np

import warphash

K = 12
letters = np.random.default_rng(2).integers(0, 4, size=200_000, dtype=np.uint32)

kmers = np.zeros(len(letters) - K + 1, dtype=np.uint32)
for offset in range(K):
    kmers = kmers << 2 | letters[offset : offset + len(kmers)]

counts = warphash.HashMap("uint32", "uint32", capacity=len(kmers))
for batch in np.array_split(kmers, 4):
    counts.upsert(batch, np.ones(len(batch), dtype=np.uint32), "add")

seen, times = counts.to_arrays()
assert times.sum() == len(kmers)
print(f"{len(seen):,} distinct, the most frequent {times.max()} times")
