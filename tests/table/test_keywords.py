"""What a type checker is told of the keywords of tables agrees with what tables take."""

from __future__ import annotations

import inspect
import re
import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from support.cases import design_names
from warphash import HashMap, HashSet, MultiMap, ParameterError
from warphash.designs import auto, registry
from warphash.designs.base import Parameter
from warphash.runtime.abi import Comparison as ComparisonCode
from warphash.storage.bounded.bound import EVICT
from warphash.storage.hash_constants import HASHES
from warphash.table import keywords
from warphash.table.base import BaseTable
from warphash.table.maps import _COMBINING

SCRIPT: dict[str, Any] = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "generate_keywords.py"))
MODULE = Path(keywords.__file__).read_text(encoding="utf-8")
DESIGNS = [registry.get(name) for name in registry.names()]
HINTS = get_type_hints(keywords.TableOptionsWithCapacity)
PARAMETERS = {(name, p.name): p for name in design_names() for p in registry.get(name).parameters}


def literals(hint: Any) -> set[Any]:
    """The values of a Literal, also of an optional one."""
    return {value for part in get_args(hint) for value in (get_args(part) or (part,)) if value is not type(None)}


def test_what_designs_take_is_up_to_date() -> None:
    assert SCRIPT["generated"](MODULE, DESIGNS) == MODULE, (
        "designs take something else: run scripts/generate_keywords.py"
    )


def test_another_name_choice_or_mark_is_noticed() -> None:
    first, *others = DESIGNS
    parameter = Parameter("colour", "red", "", choices=("red", "green"))
    for changed, line in (
        (replace(first, aliases=("other",)), '    "other",\n'),
        (replace(first, parameters=(parameter,)), '    colour: Literal["red", "green"]\n'),
        (replace(first, parameters=(Parameter("depth", None, "", bounds=(1, 9)),)), "    depth: int | None\n"),
        (replace(first, parameters=(Parameter("share", 0.5, "", bounds=(0.1, 0.9)),)), "    share: float\n"),
    ):
        made = SCRIPT["generated"](MODULE, [changed, *others])
        assert line in made and line not in MODULE
    with pytest.raises(SystemExit, match="no two lines"):
        SCRIPT["generated"](MODULE.replace(SCRIPT["END"], ""), DESIGNS)


def test_every_keyword_is_told() -> None:
    taken = set(inspect.signature(BaseTable.__init__).parameters) - {"self", "key", "value", "parameters"}
    assert set(HINTS) == taken | {parameter for _, parameter in PARAMETERS} | {"priorities"}


@pytest.mark.parametrize(
    "function", [each for kind in (HashMap, HashSet, MultiMap) for each in (kind, kind.from_arrays)]
)
def test_signatures_name_every_keyword_with_its_default(function: Any) -> None:
    shown = inspect.signature(function).parameters
    assert not any(each.kind is inspect.Parameter.VAR_KEYWORD for each in shown.values())
    of_arrays = {"keys", "values", "scores", "assume_unique"}
    assert set(shown) - {"key", "value"} - of_arrays == set(HINTS)
    for name, each in inspect.signature(BaseTable.__init__).parameters.items():
        if name in HINTS:
            assert shown[name].kind is inspect.Parameter.KEYWORD_ONLY
            assert shown[name].default == each.default
    assert f"{HINTS['seed']}".replace(" ", "") == shown["seed"].annotation.replace(" ", "")


@pytest.mark.parametrize(
    ("keyword", "nearest"),
    [
        ("desing", "'design'"),
        ("prioritys", "'priorities'"),
        ("capacty", "'capacity'"),
        ("Slots_per_buckets", "'slots_per_bucket'"),
        ("max_sizes", "'max_size'"),
        ("load_fctor", "'load_factor'"),
    ],
)
@pytest.mark.parametrize("make", [HashMap, HashMap.from_arrays, MultiMap, MultiMap.from_arrays])
def test_a_wrong_keyword_gets_the_nearest_right_one(make: Any, keyword: str, nearest: str) -> None:
    given = ("u4", "u4") if isinstance(make, type) else ([1], [2])
    with pytest.raises(
        ParameterError, match=rf"no parameter '{keyword}'; it has: .*; did you mean {nearest}"
    ) as caught:
        make(*given, design="iceberg", device="cpu", **{keyword: 1})
    assert str(caught.value).endswith("?")


def test_a_wrong_design_gets_the_nearest_right_one() -> None:
    with pytest.raises(ParameterError, match="did you mean 'bcht'"):
        HashMap("u4", "u4", design="bchtt", device="cpu")
    with pytest.raises(ParameterError, match=r"or 'auto'$"):
        HashMap("u4", "u4", design="xxxx", device="cpu")


def test_names_are_those_of_the_registry() -> None:
    names = {alias for name in design_names() for alias in (name, *registry.get(name).aliases)}
    assert literals(HINTS["design"]) == names | {"auto"}
    assert set(get_args(get_args(HINTS["priorities"])[0])) == set(auto.PRIORITIES)
    assert literals(HINTS["evict"]) == set(EVICT)
    assert literals(HINTS["hash"]) == set(HASHES)
    assert set(get_args(keywords.Operator)) == {*_COMBINING, "first", "last"}
    assert len(get_args(keywords.Comparison)) == len(ComparisonCode)


def test_a_parameter_of_several_designs_has_one_mark() -> None:
    marks = {(p.name, p.of_paper) for p in PARAMETERS.values()}
    assert len(marks) == len({name for name, _ in marks})


def test_help_lists_the_usual_parameters_ahead_of_those_of_papers() -> None:
    text = (inspect.getdoc(HashMap) or "").partition("**parameters\n")[2].partition("Raises\n")[0]
    first, _, behind = text.partition("Only papers need the others")
    usual = [name for line in re.findall(r"- (.*?): ", first) for name in re.findall(r"``(\w+)``", line)]
    assert len(usual) == 8 and set(usual) == set(registry.usual_parameters())
    of_papers = re.findall(r"``(\w+)``", behind)
    assert len(of_papers) == len(set(of_papers))
    assert set(of_papers) == {p.name for p in PARAMETERS.values() if p.of_paper}


@pytest.mark.parametrize("parameter", PARAMETERS.values(), ids=["-".join(names) for names in PARAMETERS])
def test_a_parameter_has_its_type(parameter: Parameter) -> None:
    hint = HINTS[parameter.name]
    if parameter.choices and isinstance(parameter.choices[0], str):
        assert set(parameter.choices) <= literals(hint)
    elif parameter.default is None:
        assert type(None) in get_args(hint) and int in get_args(hint)
    else:
        assert hint is type(parameter.default)
