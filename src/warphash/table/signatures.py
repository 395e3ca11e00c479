"""Signatures that name every keyword, for `help` and for Tab in a notebook."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from inspect import Parameter
from typing import Any, TypeVar, cast

from .keywords import DesignParameters

__all__ = ["names_keywords"]

_F = TypeVar("_F", bound=Callable[..., Any])


def names_keywords(options: Any, taken_by: Callable[..., Any]) -> Callable[[_F], _F]:
    """Replace ``**options`` in the signature of a function by the keywords that it stands for.

    The function itself is not changed. The default ``...`` stands for that of the design.

    Parameters
    ----------
    options
        The `TypedDict` that the function unpacks.
    taken_by
        The function that takes the options in the end. Its signature has the defaults.
    """

    def with_signature(function: _F) -> _F:
        signature = inspect.signature(function)
        own = [each for each in signature.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
        types = {name: hint.__forward_arg__ for name, hint in options.__annotations__.items()}
        defaults = {name: each.default for name, each in inspect.signature(taken_by).parameters.items()}
        of_designs = [name for name in types if name in DesignParameters.__annotations__]
        shown = [name for name in defaults if name in types]
        shown += [name for name in types if name not in defaults and name not in of_designs] + of_designs
        keywords = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=defaults.get(name, ...), annotation=types[name])
            for name in shown
            if name not in signature.parameters
        ]
        cast(Any, function).__signature__ = signature.replace(parameters=[*own, *keywords])
        return function

    return with_signature
