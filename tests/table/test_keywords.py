"""What a type checker is told of the keywords of tables agrees with what tables take."""

from __future__ import annotations

import inspect
from typing import Any, get_args, get_type_hints

import pytest

from support.cases import design_names
from warphash.designs import auto, registry
from warphash.designs.base import Parameter
from warphash.runtime.abi import Comparison as ComparisonCode
from warphash.storage.bounded.bound import EVICT
from warphash.storage.hash_constants import HASHES
from warphash.table import keywords
from warphash.table.base import BaseTable
from warphash.table.maps import _COMBINING

HINTS = get_type_hints(keywords.TableOptionsWithCapacity)
PARAMETERS = {(name, p.name): p for name in design_names() for p in registry.get(name).parameters}


def literals(hint: Any) -> set[Any]:
    """The values of a Literal, also of an optional one."""
    return {value for part in get_args(hint) for value in (get_args(part) or (part,)) if value is not type(None)}


def test_every_keyword_is_told() -> None:
    taken = set(inspect.signature(BaseTable.__init__).parameters) - {"self", "key", "value", "parameters"}
    assert set(HINTS) == taken | {parameter for _, parameter in PARAMETERS} | {"priorities"}


def test_names_are_those_of_the_registry() -> None:
    names = {alias for name in design_names() for alias in (name, *registry.get(name).aliases)}
    assert literals(HINTS["design"]) == names | {"auto"}
    assert set(get_args(get_args(HINTS["priorities"])[0])) == set(auto.PRIORITIES)
    assert literals(HINTS["evict"]) == set(EVICT)
    assert literals(HINTS["hash"]) == set(HASHES)
    assert set(get_args(keywords.Operator)) == {*_COMBINING, "first", "last"}
    assert len(get_args(keywords.Comparison)) == len(ComparisonCode)


@pytest.mark.parametrize("parameter", PARAMETERS.values(), ids=["-".join(names) for names in PARAMETERS])
def test_a_parameter_has_its_type(parameter: Parameter) -> None:
    hint = HINTS[parameter.name]
    if parameter.choices and isinstance(parameter.choices[0], str):
        assert set(parameter.choices) <= literals(hint)
    elif parameter.default is None:
        assert type(None) in get_args(hint) and int in get_args(hint)
    else:
        assert hint is type(parameter.default)
