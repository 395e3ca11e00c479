"""The layers of the kernels' headers, read from their includes: families and designs, core, platform."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path, PurePosixPath

import pytest

from warphash.designs import registry

KERNELS = Path(str(resources.files("warphash") / "kernels"))
LAB_KERNELS = Path(str(resources.files("warphash.lab") / "kernels"))
FAMILIES = (
    "buckets",
    "chains",
    "subtables",
    "tickets",
    "two_level",
    "quotient",
    "rows",
    "aggregates",
    "bounded",
    "strings",
    "groups",
    "joins",
    "owners",
    "group_records",
)
MAY_INCLUDE = {
    "platform": {"platform"},
    "core": {"core", "platform"},
    **{family: {family, "core", "platform"} for family in FAMILIES},
    "groups": {"groups", "rows", "core", "platform"},  # rows of any width are compared as everywhere
    "group_records": {"group_records", "groups", "core", "platform"},  # keys are numbered as everywhere
    "joins": {"joins", "groups", "core", "platform"},  # a batch is cut into chunks as everywhere
    "designs": {"designs", "core", "platform", *FAMILIES},
}
"""The folders whose headers a folder's headers may include."""

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
CONDITION = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b", re.MULTILINE)


def headers(root: Path) -> list[PurePosixPath]:
    """The headers below ``root``, by their paths from there."""
    return sorted(PurePosixPath(path.relative_to(root).as_posix()) for path in root.rglob("*.cuh"))


def text(header: PurePosixPath) -> str:
    return (KERNELS / header).read_text(encoding="utf-8")


def includes(header: PurePosixPath) -> list[PurePosixPath]:
    return [PurePosixPath(path) for path in INCLUDE.findall(text(header))]


def side(header: PurePosixPath) -> str | None:
    """What runs the header, if not everything does: ``"cpu"`` or ``"gpu"``."""
    return next((part for part in header.parts[:-1] if part in ("cpu", "gpu")), None)


@pytest.mark.parametrize("header", headers(KERNELS), ids=str)
class TestHeader:
    def test_includes_name_headers_by_their_path_from_the_root(self, header: PurePosixPath) -> None:
        assert not [str(path) for path in includes(header) if not (KERNELS / path).is_file()]

    def test_includes_only_what_its_layer_may_know(self, header: PurePosixPath) -> None:
        allowed = MAY_INCLUDE[header.parts[0]]
        assert not [str(path) for path in includes(header) if path.parts[0] not in allowed]

    def test_includes_nothing_of_the_other_side(self, header: PurePosixPath) -> None:
        if header.parts[0] != "platform":
            assert not [str(path) for path in includes(header) if side(path) not in (None, side(header))]

    def test_is_included_once(self, header: PurePosixPath) -> None:
        assert "#pragma once\n" in text(header)

    def test_has_a_condition_of_the_preprocessor_only_in_platform(self, header: PurePosixPath) -> None:
        if header.parts[0] != "platform":
            assert not CONDITION.search(text(header))


def test_platform_names_no_family_and_no_design() -> None:
    names = "|".join([*(f"{family}/" for family in FAMILIES), "subtable", "chain", "slab", "guest", *registry.names()])
    named = re.compile(rf"\b({names})", re.IGNORECASE)
    found = {str(header): named.findall(text(header)) for header in headers(KERNELS) if header.parts[0] == "platform"}
    assert {header: names for header, names in found.items() if names} == {}


def test_kernels_that_measure_are_no_part_of_the_product() -> None:
    assert not [str(h) for h in headers(KERNELS) for path in includes(h) if path in headers(LAB_KERNELS)]
    texts = [(LAB_KERNELS / header).read_text(encoding="utf-8") for header in headers(LAB_KERNELS)]
    assert texts and not any(CONDITION.search(text) for text in texts)
