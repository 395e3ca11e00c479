"""The ``warphash`` command, and ``python -m warphash``: what runs on the standard library alone, then the rest.

``doctor`` and ``--version`` have to work where the extras, NumPy or the compiled extension are missing.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command."""
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        from . import __version__

        print(f"warphash {__version__}")
    elif arguments[:1] == ["doctor"] and not any(argument.startswith("-") for argument in arguments):
        from .runtime.doctor import examined

        sys.exit(examined(arguments[1:]))
    else:
        from .cli import main as run  # not `from . import cli`, which asks the package and so imports NumPy

        run()


if __name__ == "__main__":
    main()
