"""Every public name is documented: its parameters are those of its signature, and it has the sections that apply."""

from __future__ import annotations

import inspect
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NAMES: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "_extensions" / "public_names.py"))
Public: Any = NAMES["Public"]

PUBLIC = NAMES["public_names"]()
CALLED = [each for each in PUBLIC if NAMES["shown_signature"](each)]
PAGES = {page.name: page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs" / "reference").glob("*.md"))}
FEWEST = 200
"""Of `warphash`, `warphash.stream` and the registry alone: a count of nothing would agree with everything."""

NO_EXAMPLE = {
    "cuda": "needs a GPU",
    "captures_are_current": "needs a GPU",
    "set_memory_resource": "needs a GPU",
    "extra_repr": "is for repr",
}
"""Methods that no document can run everywhere."""


def parameters_of(public: Any) -> list[str]:
    """As the docstring should tell them."""
    star = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    signature = NAMES["shown_signature"](public)
    return [star.get(each.kind, "") + each.name for each in signature.parameters.values()]


def told_otherwise(publics: list[Any]) -> list[tuple[str, list[str], list[str]]]:
    """Names whose docstring and signature differ, with what either says."""
    called = [each for each in publics if not NAMES["is_made_by_a_verb"](each)]
    pairs = [(each.name, each.told("Parameters"), parameters_of(each)) for each in called]
    return [pair for pair in pairs if pair[1] != pair[2]]


def answers(public: Any) -> bool:
    """Whether a function or method returns something."""
    annotation = inspect.signature(public.function).return_annotation
    return annotation not in (None, "None")


def test_no_public_name_is_without_a_docstring() -> None:
    assert len(PUBLIC) > FEWEST
    assert [each.name for each in PUBLIC if not each.doc] == []


def test_first_lines_end_in_one_sentence() -> None:
    firsts = {each.name: each.doc.partition("\n")[0] for each in PUBLIC}
    assert [name for name, line in firsts.items() if not line.endswith((".", ":"))] == []


def test_parameters_are_those_of_the_signature() -> None:
    assert len(CALLED) > FEWEST // 2
    assert told_otherwise(CALLED) == []


def test_fields_of_records_are_told() -> None:
    records = [each for each in PUBLIC if hasattr(each.value, "_fields") or hasattr(each.value, "__dataclass_fields__")]
    fields = {
        each.name: list(getattr(each.value, "_fields", None) or each.value.__dataclass_fields__) for each in records
    }
    told = {each.name: each.told("Attributes") for each in records}
    assert len(fields) > 5
    assert {name: sorted(each) for name, each in told.items()} == {name: sorted(each) for name, each in fields.items()}


def test_what_a_verb_returns_is_told() -> None:
    functions = [each for each in PUBLIC if each.function is not None and answers(each)]
    assert len(functions) > FEWEST // 2
    silent = [each.name for each in functions if not {"Returns", "Yields"} & set(each.sections)]
    assert silent == []


def page_of(name: str) -> str:
    """The page of the reference that documents a name."""
    documents = re.compile(rf"^\.\. auto\w+:: {re.escape(name)}$", re.MULTILINE)
    found = [text for text in PAGES.values() if documents.search(text)]
    assert len(found) == 1, f"{name} is documented on {len(found)} pages of docs/reference, not on one"
    return found[0]


def test_the_reference_has_every_name() -> None:
    assert all(page_of(each.name) for each in PUBLIC)


def test_every_name_is_used_in_an_example_that_runs() -> None:
    """In its own docstring, or, where that cannot be, in a block of its page: `test_code_runs` runs both."""
    unused = []
    for each in PUBLIC:
        last = each.name.rpartition(".")[2]
        blocks = "".join(re.findall(r"^```python\n(.*?)^```$", page_of(each.name), re.DOTALL | re.MULTILINE))
        example = each.doc.partition(">>>")[2] + blocks
        if not re.search(rf"\b{last}\b", example) and last not in NO_EXAMPLE:
            unused.append(each.name)
    assert unused == []


def test_the_cost_of_every_verb_is_told() -> None:
    called = {each.name.rpartition(".")[2] for each in PUBLIC if each.function is not None}
    told = set(re.findall(r"\b\w+\b", " ".join(re.findall(r"`[^`]+`", PAGES["costs.md"]))))
    assert len(called) > FEWEST // 4 and sorted(called - told) == []


@pytest.mark.parametrize(
    ("doc", "complaint"),
    [
        ("Do it.\n\nParameters\n----------\nx\n    A number.\ny, z\n    Others.", None),
        ("Do it.\n\nParameters\n----------\nx, y\n    Numbers.", ["x", "y"]),
        ("Do it.\n\nParameters\n----------\ny, x, z\n    Numbers.", ["y", "x", "z"]),
        ("Do it.", []),
    ],
)
def test_another_parameter_is_noticed(doc: str, complaint: list[str] | None) -> None:
    def planted(x: int, y: int = 0, *, z: int = 0) -> None: ...

    planted.__doc__ = doc
    wrong = told_otherwise([Public("planted", planted)])
    assert wrong == ([] if complaint is None else [("planted", complaint, ["x", "y", "z"])])


def test_keywords_may_be_told_together() -> None:
    def planted(x: int, *, a: int = 0, b: int = 0) -> None: ...

    planted.__doc__ = "Do it.\n\nParameters\n----------\nx, a\n    Told.\n**options\n    The others."
    assert parameters_of(Public("planted", planted)) == ["x", "a", "**options"]
