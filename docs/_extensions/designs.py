"""The directive ``design``: what the registry and the header of a design say of it."""

from __future__ import annotations

import ast
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata

from warphash.designs import registry
from warphash.designs.base import Parameter


def head_of(header: Path) -> str:
    """The comment above ``#pragma once``, without the marks of a comment; of a file of Python, its docstring."""
    if header.suffix == ".py":
        return ast.get_docstring(ast.parse(header.read_text(encoding="utf-8"))) or ""
    head, pragma, _ = header.read_text(encoding="utf-8").partition("#pragma once")
    if not pragma:
        raise ValueError(f"{header} has no #pragma once, which ends the comment at its head")
    return "\n".join(line.removeprefix("//").removeprefix(" ") for line in head.rstrip().splitlines())


def values_of(parameter: Parameter) -> str:
    """What the parameter takes, for people."""
    if parameter.choices is not None:
        return ", ".join(repr(choice) for choice in parameter.choices)
    least, most = parameter.bounds or (None, None)
    return f"{least} to {most}"


class DesignDirective(SphinxDirective):
    """``design NAME``: aliases, source, parameters and header of a design; its lines name more files of the package.

    Nothing of that is written a second time: the registry has the parameters, and the headers have the drawings.
    """

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the facts, the table of parameters and the heads of the headers."""
        design = registry.get(self.arguments[0])
        package = Path(self.env.srcdir, "src", "warphash")
        facts = [f"{design.title}. Source: {design.citation}."]
        if design.aliases:
            facts.append("Other names: " + ", ".join(f"``{name}``" for name in design.aliases) + ".")
        facts.append("Keys never move." if not design.moves_keys else "An insert may move other keys.")
        made: list[nodes.Node] = [nodes.paragraph("", "", *self.parse_inline(" ".join(facts))[0])]
        if design.parameters:
            made.append(self._table(design.parameters))
        own = package / "kernels" / "designs" / f"{design.name}.cuh"
        for header in [own] * own.exists() + [package / name for name in self.content]:
            self.env.note_dependency(str(header))
            title = nodes.paragraph("", "", nodes.literal("", header.relative_to(package).as_posix()))
            head = nodes.container(
                "", nodes.literal_block("", head_of(header), language="text"), classes=["head-of-file"]
            )
            made += [title, head]
        return made

    def _table(self, parameters: tuple[Parameter, ...]) -> nodes.Node:
        """Parameters with their defaults and what they take."""
        rows = [("parameter", "default", "takes", "what it does")]
        for p in parameters:
            text = f"{p.doc} (only papers need it)" if p.of_paper else p.doc
            rows.append((f"``{p.name}``", f"``{p.default!r}``", values_of(p), text))
        lines = [f"   {'* -' if not i else '  -'} {cell}" for row in rows for i, cell in enumerate(row)]
        box = nodes.container()
        text = [".. list-table::", "   :header-rows: 1", "", *lines]
        self.state.nested_parse(StringList(text, self.get_source_info()[0]), self.content_offset, box)
        return box


def setup(app: Sphinx) -> ExtensionMetadata:
    """Sphinx calls this."""
    app.add_directive("design", DesignDirective)
    return {"parallel_read_safe": True}
