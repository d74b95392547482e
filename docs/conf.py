"""Sphinx configuration; `make docs` builds with warnings as errors."""

from importlib.metadata import version as _version

project = "fastmix"
author = "The fastmix developers"
copyright = author
release = version = _version("fastmix")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "numpydoc",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
autosummary_generate = False
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"

html_theme = "furo"
html_title = "fastmix"
html_static_path: list[str] = []
html_copy_source = False
