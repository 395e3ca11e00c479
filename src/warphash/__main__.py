"""``python -m warphash``."""

from warphash.cli import main

main()
