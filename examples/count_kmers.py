"""Count the k-mers of a FASTA file. A k-mer and its reverse complement are one; no k-mer has a letter N."""

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

import warphash

CODE = np.full(256, 4, np.uint8)
CODE[np.frombuffer(b"ACGTacgt", np.uint8)] = [0, 1, 2, 3, 0, 1, 2, 3]


def records(path: Path) -> Iterator[str]:
    """The sequence of each record."""
    for record in path.read_text().split(">")[1:]:
        yield record.partition("\n")[2].replace("\n", "")


def canonical(sequence: str, k: int) -> npt.NDArray[np.uint64]:
    """The lesser of each k-mer and its reverse complement: two bits for each letter, the first letter topmost."""
    codes = CODE[np.frombuffer(sequence.encode(), np.uint8)]
    n = max(0, len(codes) - k + 1)
    strand, reverse, known = np.zeros(n, np.uint64), np.zeros(n, np.uint64), np.ones(n, bool)
    for at in range(k):
        code = codes[at : at + n]
        known &= code < 4
        strand = strand << np.uint64(2) | code
        reverse |= (np.uint64(3) - code) << np.uint64(2 * at)
    return np.minimum(strand, reverse)[known]


def text(kmer: int, k: int) -> str:
    return "".join("ACGT"[kmer >> 2 * at & 3] for at in reversed(range(k)))


def write_fasta(path: Path, n: int) -> None:
    """Three records, the last of which has the second one reversed behind an N."""
    complement = str.maketrans("ACGT", "TGCA")
    one, two = ("".join(np.random.default_rng(2).choice(list("ACGT"), n // 4)) for _ in range(2))
    three = f"{one[: n // 8]}NN{two.translate(complement)[::-1]}"
    with path.open("w") as file:
        for name, sequence in (("one", one.lower()), ("two", two), ("three", three)):
            lines = (sequence[at : at + 70] for at in range(0, len(sequence), 70))
            print(f">{name}", *lines, sep="\n", file=file)


def check(path: Path, k: int, counted: dict[str, int]) -> None:
    """Count again, letter by letter."""
    expected: Counter[str] = Counter()
    complement = str.maketrans("ACGT", "TGCA")
    for sequence in map(str.upper, records(path)):
        for at in range(len(sequence) - k + 1):
            kmer = sequence[at : at + k]
            expected[min(kmer, kmer.translate(complement)[::-1])] += "N" not in kmer
    assert counted == +expected


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=100_000, help="letters of the file")
    parser.add_argument("--k", type=int, default=21, choices=range(1, 32), metavar="1..31")
    parser.add_argument("--device", help="of the table; a GPU by default, if there is one")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "reads.fa")
        write_fasta(path, given.n)
        counts = warphash.HashMap("uint64", "int64", device=given.device)
        for sequence in records(path):
            counts.upsert(canonical(sequence, given.k), 1, "add")
        kmers, times = counts.to_arrays()
        check(path, given.k, {text(kmer, given.k): count for kmer, count in counts.items()})
    print(f"{times.sum():,} {given.k}-mers, {len(kmers):,} distinct, the most frequent {times.max()} times")


if __name__ == "__main__":
    main()
