"""The table of equations has every numbered statement of the paper, and what it names exists."""

import importlib
import re
from pathlib import Path

import pytest

import fastmix

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "equations.md").read_text()
ROWS = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.startswith("| ")]
#: How many of each the paper numbers; both theorems have parts.
NUMBERED = {
    "Definition": range(1, 5), "Remark": range(1, 4), "Proposition": range(1, 3),
    "Lemma": range(1, 15), "Claim": range(1, 3), "Algorithm": range(1, 4),
    "Theorem": ("1.1", "1.2", "2.1", "2.2", "2.3"), "Appendix": "CDEFH",
}  # fmt: skip


def resolved(dotted):
    """Return the object of a dotted name, whose first words are modules."""
    module, found = fastmix, fastmix
    for word in dotted.split(".")[1:]:
        if hasattr(found, word):
            found = getattr(found, word)
        else:
            module = found = importlib.import_module(f"{module.__name__}.{word}")
        module = found if hasattr(found, "__path__") else module
    return found


@pytest.mark.parametrize("kind", NUMBERED)
def test_every_numbered_statement_has_a_row(kind):
    for number in NUMBERED[kind]:
        rows = [row for row in ROWS if re.match(rf"{kind} {number}(?![0-9])", row[0])]
        assert len(rows) == 1 or (rows and kind == "Appendix"), (kind, number)
        assert all(len(row) == 3 and row[1] and row[2] for row in rows)


def test_functions_that_are_named_exist():
    names = re.findall(r"`(fastmix(?:\.\w+)+)`", PAGE)
    assert len(names) > 50
    for name in names:
        assert resolved(name) is not None, name


def test_functions_in_files_that_are_named_exist():
    """A row says `function` in `file`; several functions may share the file."""
    places = re.findall(r"((?:`\w+`(?:, )?)+) in `([\w/]+\.py)`", PAGE)
    assert len(places) > 4
    for names, path in places:
        text = (ROOT / path).read_text()
        for name in re.findall(r"\w+", names):
            assert re.search(rf"^def {name}\(", text, flags=re.MULTILINE), (name, path)


def test_folders_and_notebooks_that_are_named_exist():
    paths = re.findall(r"`((?:tests|reproduction|notebooks)/[\w/.]*)`", PAGE)
    assert len(paths) > 50
    for path in paths:
        assert (ROOT / path).exists(), path
