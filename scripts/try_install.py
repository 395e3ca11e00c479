"""Install warphash as a newcomer does, in an environment that has nothing, and run what README shows first.

::

    python scripts/try_install.py dist/warphash-0.1.0-cp312-abi3-manylinux_2_28_x86_64.whl
    python scripts/try_install.py .        # from a clone of this one, or from an sdist: needs a compiler
    python scripts/try_install.py --here   # no installation: the environment of this interpreter
    python scripts/try_install.py dist/*.whl --within 20  # fails if it takes longer, from nothing to the first answer

A wheel is installed where no program but Python's is found, so no compiler is. A clone is fresh, so nothing is built in
it yet. The seconds of each step are printed. Only the first installation after a download pays for it: pip keeps NumPy.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
COMPILERS = ("cc", "c++", "gcc", "g++", "clang", "clang++")
CHECKED = ("numpy", "cpu", "cache")
"""What ``warphash doctor`` is asked for: all that a machine without a GPU can have."""


def first_code() -> str:
    """The first Python block of README.md."""
    found = re.search(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    if found is None:
        raise SystemExit("README.md has no Python block")
    return found[1]


def timed(what: str, command: list[str], environment: dict[str, str], folder: str) -> float:
    start = time.perf_counter()
    subprocess.run(command, env=environment, cwd=folder, check=True)
    seconds = time.perf_counter() - start
    print(f"{seconds:6.1f} s  {what}", flush=True)
    return seconds


def try_in(python: Path, environment: dict[str, str], folder: str) -> float:
    """Run README's first code and the doctor with an interpreter, away from the sources; the seconds of the code."""
    seconds = timed("README's first code", [str(python), "-c", first_code()], environment, folder)
    doctor = [str(python.with_name("warphash")), "doctor", *CHECKED]
    timed(f"warphash doctor {' '.join(CHECKED)}", doctor, environment, folder)
    return seconds


def clone(what: Path, environment: dict[str, str], folder: str) -> tuple[Path, float]:
    """A clone of a clone, with nothing built in it; what is none, as it is. And the seconds that it took."""
    if not (what / ".git").exists():
        return what, 0.0
    made = Path(folder, "clone")
    command = ["git", "clone", "--quiet", "--depth", "1", what.as_uri(), str(made)]
    return made, timed("a clone", command, environment, folder)


def without_compiler(bin_folder: Path) -> dict[str, str]:
    """The environment of a machine that has Python and no compiler."""
    lent = [name for name in COMPILERS if (bin_folder / name).exists()]
    if lent:
        raise SystemExit(f"{bin_folder} has {', '.join(lent)}: a wheel is tried without a compiler")
    kept = {name: value for name, value in os.environ.items() if name not in ("CXX", "CC", "PYTHONPATH")}
    return {**kept, "PATH": str(bin_folder)}


def main() -> None:
    parser = argparse.ArgumentParser(description="Install warphash in an empty environment, and try it.")
    parser.add_argument("what", nargs="?", help="a wheel, an sdist, or the folder of the sources")
    parser.add_argument("--here", action="store_true", help="try what this interpreter has installed")
    parser.add_argument("--within", type=float, metavar="SECONDS", help="fail if the first answer takes longer")
    given = parser.parse_args()
    if given.here == bool(given.what):
        parser.error("expected either something to install or --here")
    with tempfile.TemporaryDirectory() as folder:
        cache = {"WARPHASH_CACHE_DIR": str(Path(folder, "cache"))}
        if given.here:
            try_in(Path(sys.executable), {**os.environ, **cache}, folder)
            return
        python = Path(folder, "venv", "bin", "python")
        own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        what, seconds = clone(Path(given.what).resolve(), own, folder)
        seconds += timed("an empty environment", [sys.executable, "-m", "venv", str(python.parents[1])], own, folder)
        environment = {**(without_compiler(python.parent) if what.suffix == ".whl" else own), **cache}
        install = [str(python), "-m", "pip", "install", "--quiet", str(what)]
        seconds += timed(f"pip install {what.name}", install, environment, folder)
        seconds += try_in(python, environment, folder)
        print(f"{seconds:6.1f} s  from nothing to the first answer")
        if given.within is not None and seconds > given.within:
            raise SystemExit(f"expected the first answer within {given.within:g} s, got it after {seconds:.1f}")


if __name__ == "__main__":
    main()
