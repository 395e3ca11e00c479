"""On Python without the interpreter's lock, the extension leaves that lock away."""

from __future__ import annotations

import subprocess
import sys
import sysconfig

import pytest

PROGRAM = """
import sys
import threading

import numpy as np

import warphash
from warphash.runtime.cuda import _streams

assert not sys._is_gil_enabled()
keys = np.arange(50_000)
table = warphash.HashMap(np.int64, np.int64, device="cpu")
meet = threading.Barrier(4)
added = []


def work(number):
    meet.wait()
    for batch in np.array_split(np.random.default_rng(number).permutation(keys), 50):
        added.append(int(table.insert(batch, batch).sum()))
        assert (table[batch] == batch).all()


threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert sum(added) == len(table) == len(keys)
table.check()
assert not sys._is_gil_enabled()
print("right")
"""


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python has the interpreter's lock")
def test_the_extension_does_not_bring_the_lock_back() -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", PROGRAM], capture_output=True, text=True, timeout=300)
    assert done.stdout == "right\n", done.stderr
