"""Try random examples of warphash against oracles, and print a table of what they find.

    python -m fuzz --examples 20000 --seed 0 --jobs 2
    python -m fuzz --kind links --number 17

The first command runs all kinds by their shares. The second runs one example again, in this process.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time

from fuzz.driver import Batch, find, run
from fuzz.example import Example
from fuzz.finding import Finding, table_of
from fuzz.kinds import KINDS


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--examples", type=int, default=20_000, help="number of examples of all kinds")
    parser.add_argument("--seed", type=int, default=0, help="of the random numbers of all examples")
    parser.add_argument("--jobs", type=int, default=2, help="number of workers at a time")
    parser.add_argument("--kind", action="append", choices=sorted(KINDS), help="only this kind; may be repeated")
    parser.add_argument("--number", type=int, help="only this example of the kind, in this process")
    given = parser.parse_args()
    names = given.kind or list(KINDS)
    if given.number is not None:
        return _run_one(Example(names[0], given.seed, given.number))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that workers end, too
    begun = time.monotonic()
    findings = run(batches(names, given.examples, given.seed), given.jobs, _progress)
    print(f"\n{given.examples:,} examples in {time.monotonic() - begun:.0f} s, {len(findings)} findings")
    print(table_of(findings), end="\n" if findings else "")
    return bool(findings)


def batches(names: list[str], examples: int, seed: int) -> list[Batch]:
    """The examples of some kinds, by their shares, with the kinds in turn."""
    shares = sum(KINDS[name].share for name in names)
    made = []
    for name in names:
        kind = KINDS[name]
        count = max(1, examples * kind.share // shares)
        made += [
            (first / count, Batch(name, kind, seed, range(first, min(count, first + kind.batch))))
            for first in range(0, count, kind.batch)
        ]
    return [batch for _, batch in sorted(made, key=lambda each: each[0])]


def _run_one(example: Example) -> int:
    found = find(KINDS[example.kind], example)
    print("\n".join(example.steps))
    if found is not None:
        print(table_of([found]))
    return found is not None


def _progress(done: int, findings: list[Finding]) -> None:
    distinct = len({each.signature for each in findings})
    print(f"\r{done:,} examples, {len(findings)} findings, {distinct} distinct", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
