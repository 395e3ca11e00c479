"""The version of the package. ``pyproject.toml`` has it, too."""

__all__ = ["__version__"]

__version__ = "0.1.0"
