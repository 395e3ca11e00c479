"""How the API reference shows signatures, and finds what docstrings name."""

from __future__ import annotations

from enum import Enum
from typing import Any

from docutils import nodes
from public_names import Public, is_made_by_a_verb, shown_signature
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.typing import ExtensionMetadata

HOMES = ("warphash", "warphash.distributed", "warphash.torch", "warphash.table.plan", "warphash.table.items")
"""Where a name is looked for that a docstring calls without its module."""


def _show_signature(
    app: Sphinx, what: str, name: str, value: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str, None] | None:
    """Sphinx calls this for each signature of the reference."""
    if what not in ("class", "function", "method") or not signature:
        return None
    public = Public(name, getattr(value, "__func__", value))
    if is_made_by_a_verb(public) or (isinstance(value, type) and issubclass(value, Enum | BaseException)):
        return "", None
    shown = shown_signature(public)
    return None if shown is None else (str(shown), None)


def _link(app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.Element) -> nodes.Node | None:
    """Find a name that a docstring of an inner package cites as it is called at the top, such as ``HashMap.find``."""
    if node.get("refdomain") != "py" or node["reftarget"].startswith("warphash."):
        return None
    python = env.domains.python_domain
    for home in HOMES:
        target = f"{home}.{node['reftarget']}"
        if target in python.objects:
            return python.resolve_xref(env, node["refdoc"], app.builder, "obj", target, node, content)
    return None


def setup(app: Sphinx) -> ExtensionMetadata:
    """Sphinx calls this."""
    app.connect("autodoc-process-signature", _show_signature)
    app.connect("missing-reference", _link)
    return {"parallel_read_safe": True}
