"""The public names of the package, and what their docstrings tell of them.

The API reference shows signatures by this module, and `tests/docs` counts by it what is documented. It needs no Sphinx.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from collections.abc import Iterator
from enum import Enum
from importlib.util import find_spec
from typing import Any, NamedTuple

MODULES = (
    "warphash",
    "warphash.stream",
    "warphash.distributed",
    "warphash.distributed.datasets",
    "warphash.torch",
    "warphash.jax",
    "warphash.designs.registry",
)
"""``warphash.relational`` has names of ``warphash`` alone."""

RETURNED = ("warphash.table.plan.MapPlan", "warphash.table.plan.SetPlan", "warphash.table.items.ItemsView")
"""Classes that no module lists, and whose objects public verbs return."""

NEEDED = {"distributed": "torch", "torch": "torch", "jax": "jax"}
"""The frameworks that packages of ``warphash`` import."""


class Public(NamedTuple):
    """A public name.

    Attributes
    ----------
    name
        With its module, and its class if it is a method or a property.
    value
        What it stands for, as its class has it.
    """

    name: str
    value: Any

    @property
    def function(self) -> Any:
        """What is called; None for what is not."""
        if isinstance(self.value, staticmethod | classmethod):
            return self.value.__func__
        return self.value if inspect.isroutine(self.value) else None

    @property
    def doc(self) -> str:
        """Its docstring, without indentation."""
        return inspect.getdoc(self.function or self.value) or ""

    @property
    def sections(self) -> dict[str, str]:
        """Texts of the sections of its docstring, by their titles."""
        _, *parts = re.split(r"^([A-Z][A-Za-z ]+)\n-{3,}$", self.doc, flags=re.MULTILINE)
        return dict(zip(parts[::2], parts[1::2], strict=True))

    def told(self, section: str) -> list[str]:
        """Names of the entries of a section, such as ``Parameters``: those that stand at the left."""
        lines = [line for line in self.sections.get(section, "").splitlines() if line[:1].strip()]
        return [name.strip() for line in lines for name in line.split(",")]


def importable() -> tuple[str, ...]:
    """The modules whose framework is installed."""
    needed = {module: NEEDED.get(module.partition(".")[2].partition(".")[0]) for module in MODULES}
    return tuple(module for module, name in needed.items() if name is None or find_spec(name))


def is_record(value: Any) -> bool:
    """Whether fields are told in place of parameters: of named tuples, dataclasses, enumerations and exceptions."""
    if not isinstance(value, type):
        return False
    return hasattr(value, "_fields") or dataclasses.is_dataclass(value) or issubclass(value, Enum | BaseException)


def is_made_by_a_verb(public: Public) -> bool:
    """Whether the docstring of a class says that a verb makes its objects, so that nobody calls the class."""
    return isinstance(public.value, type) and ("Made by `" in public.doc or public.name in RETURNED)


def members_of(name: str, value: type) -> Iterator[Public]:
    """Public methods and properties that classes of this package define, inherited ones too."""
    ours = [base for base in value.__mro__ if base.__module__.startswith("warphash")]
    for member in sorted({member for base in ours for member in vars(base) if not member.startswith("_")}):
        static = inspect.getattr_static(value, member)
        if isinstance(static, property | classmethod | staticmethod) or inspect.isroutine(static):
            yield Public(f"{name}.{member}", static)


def public_names() -> list[Public]:
    """Functions and classes of the modules that can be imported, and the members of the classes."""
    found: list[Public] = []
    for module in importable():
        home = importlib.import_module(module)
        for name in home.__all__:
            value = getattr(home, name)
            if not inspect.ismodule(value) and all(value is not each.value for each in found):
                found.append(Public(f"{module}.{name}", value))
    for name in RETURNED:
        module, _, last = name.rpartition(".")
        found.append(Public(name, getattr(importlib.import_module(module), last)))
    classes = [each for each in found if isinstance(each.value, type) and not issubclass(each.value, BaseException)]
    return found + [member for each in classes for member in members_of(each.name, each.value)]


def shown_signature(public: Public) -> inspect.Signature | None:
    """The signature, with the keywords that are told as ``**options`` put together; None for what nobody calls."""
    called = public.value if isinstance(public.value, type) else public.function
    if called is None or is_record(called):
        return None
    signature = inspect.signature(called)
    told = public.told("Parameters")
    rest = [name.removeprefix("**") for name in told if name.startswith("**")]
    kept = [each for each in signature.parameters.values() if each.name not in ("self", "cls")]
    if rest and all(each.kind is not each.VAR_KEYWORD for each in kept):
        kept = [each for each in kept if each.kind is not each.KEYWORD_ONLY or each.name in told]
        kept.append(inspect.Parameter(rest[0], inspect.Parameter.VAR_KEYWORD))
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in kept]
    return signature.replace(parameters=bare, return_annotation=inspect.Signature.empty)
