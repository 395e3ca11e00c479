"""How Sphinx makes the site.

The source folder is the root of the repository, and ``docs`` has the configuration (``-c docs``). So a link between two
documents is one path, on the site and in a checkout. Files that documents link to and that are no pages, such as
results and headers, are copied beside the pages.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import warphash

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "warphash"
author = "the authors of warphash"
project_copyright = author
version = release = warphash.__version__

extensions = ["sphinx.ext.autodoc", "numpydoc", "myst_nb", "designs", "reference"]
root_doc = "docs/index"
include_patterns = [
    "docs/**",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "results/README.md",
]
exclude_patterns = ["docs/_*", ".*", "build", "src", "tests"]  # folders that Sphinx need not walk through
templates_path = ["_templates"]
nitpicky = False  # docstrings name Python's and NumPy's types in prose; links of documents are checked by MyST

# ---- the API reference: docstrings are the text, and say the types
autodoc_typehints = "none"
autodoc_member_order = "groupwise"
autodoc_mock_imports = [name for name in ("torch", "jax") if find_spec(name) is None]
default_role = "py:obj"
python_maximum_signature_line_length = 120
numpydoc_show_class_members = False
numpydoc_attributes_as_param_list = True
numpydoc_validation_checks: set[str] = set()

# ---- documents and notebooks
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
nb_execution_mode = "force"
nb_execution_excludepatterns = [] if find_spec("torch") else ["docs/notebooks/training.ipynb"]
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True
for _name in ("OMP_NUM_THREADS", "WARPHASH_NUM_THREADS"):  # small arrays: threads would wait for each other
    os.environ.setdefault(_name, "1")
suppress_warnings = ["mystnb.unknown_mime_type"]

# ---- what the pages look like
html_theme = "pydata_sphinx_theme"
html_title = "warphash"
html_static_path = ["_static"]
html_favicon = "_static/icon.svg"
html_context = {"default_mode": "auto"}
html_css_files = ["site.css"]
html_additional_pages = {"index": "to_the_start.html"}
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    # pictures and drawings take the room
    "secondary_sidebar_items": {
        **{f"docs/designs/{page.stem}": [] for page in (Path(__file__).parent / "designs").glob("*.md")},
        "docs/index": [],
        "docs/rates": [],
        "**": ["page-toc"],
    },
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "header_links_before_dropdown": 6,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
