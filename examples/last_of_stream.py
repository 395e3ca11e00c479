"""Keep the latest reading of the sensors that reported last, in a map of at most so many keys."""

import argparse

import numpy as np

import warphash


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=100_000, help="number of readings")
    parser.add_argument("--kept", type=int, default=500, help="number of sensors that the map may hold")
    parser.add_argument("--device", help="of the map; a GPU by default, if there is one")
    given = parser.parse_args()

    rng = np.random.default_rng(1)
    sensors, readings = rng.zipf(1.2, given.n) % 10_000, rng.normal(20, 5, given.n)
    batches = [(sensors[part], readings[part]) for part in np.array_split(np.arange(given.n), 100)]

    latest = warphash.HashMap("int64", "float64", max_size=given.kept, evict="lru", device=given.device)
    for sensor, reading in batches:
        latest.upsert(sensor, reading, "last")

    reported, expected = {}, {}  # the last batch of each sensor, and its last reading
    for number, (sensor, reading) in enumerate(batches):
        reported |= dict.fromkeys(sensor.tolist(), number)
        expected |= zip(sensor.tolist(), reading.tolist(), strict=True)
    held = dict(latest.items())
    assert all(expected[sensor] == reading for sensor, reading in held.items())
    # Sensors of one batch are equally old: any of them may leave.
    assert sorted(reported[sensor] for sensor in held) == sorted(reported.values())[-given.kept :]
    print(f"{len(held):,} of {len(expected):,} sensors are held; {latest.stats().evicted:,} times one has left")


if __name__ == "__main__":
    main()
