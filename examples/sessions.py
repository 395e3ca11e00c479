"""Find the sessions of each user of a log, which is in the order of time. A pause of half an hour ends a session."""

import argparse
from itertools import chain

import numpy as np

import warphash

PAUSE = np.timedelta64(30, "m")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=100_000, help="number of visits")
    n = parser.parse_args().n

    rng = np.random.default_rng(1)
    user = rng.integers(0, n // 20 + 1, n) * 7919
    time = np.datetime64("2026-11-29T00:00:00") + np.sort(rng.integers(0, 86_400, n)).astype("m8[s]")

    groups = warphash.group_by(user)
    offsets, rows = groups.rows()  # of each user together, in the order of time: no sort
    begins = np.diff(time[rows], prepend=time[:1]) >= PAUSE
    begins[offsets[:-1]] = True
    sizes = np.diff(np.flatnonzero(begins), append=n)
    of_user = np.add.reduceat(begins.astype(np.int64), offsets[:-1])

    expected: dict[int, list[int]] = {}
    last: dict[int, int] = {}
    for who, second in zip(user.tolist(), time.astype(np.int64).tolist(), strict=True):
        mine = expected.setdefault(who, [])
        if who not in last or second - last[who] >= 1800:
            mine.append(0)
        mine[-1] += 1
        last[who] = second
    assert groups.keys.tolist() == list(expected)
    assert of_user.tolist() == list(map(len, expected.values())) and sizes.tolist() == list(chain(*expected.values()))
    print(f"{n:,} visits in {len(sizes):,} sessions, {sizes.mean():.1f} visits each and at most {sizes.max()}")


if __name__ == "__main__":
    main()
