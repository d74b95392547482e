"""Sphinx configuration; `make docs` builds with warnings as errors."""

import sys
from importlib.metadata import version as _version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "fastmix"
author = "The fastmix developers"
copyright = author
release = version = _version("fastmix")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "mathml",
]
# Pages of the reference are written in the first of these, which must be that of their templates.
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb", ".ipynb": "myst-nb"}
# Notebooks are shown with the outputs that they hold, from a copy that git does not keep.
nb_execution_mode = "off"
_books = Path(__file__).parent / "books"
_books.mkdir(exist_ok=True)
for _book in sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb")):
    # Their links are relative to the folder notebooks.
    (_books / _book.name).write_text(_book.read_text().replace("(../docs/", "(../"))
# One page per class: written to the folder reference, which git does not keep.
autosummary_generate = True
for _stale in (Path(__file__).parent / "reference").glob("*.md"):
    _stale.unlink()
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"

html_theme = "furo"
html_title = "fastmix"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
