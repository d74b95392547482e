"""The documentation builds without warnings, and its pages open in a browser without errors."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_spec = importlib.util.spec_from_file_location("browser", ROOT / "tests" / "browser.py")
browser = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(browser)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    pytest.importorskip("furo", reason="no furo: run `make docs`")
    pytest.importorskip("myst_nb", reason="no myst-nb: run `make docs`")
    out = tmp_path_factory.mktemp("docs")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "-q",
        "-b",
        "html",
        str(ROOT / "docs"),
        str(out),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def mathml():
    pytest.importorskip("latex2mathml", reason="no latex2mathml: run `make docs`")
    spec = importlib.util.spec_from_file_location("mathml", ROOT / "docs" / "_ext" / "mathml.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_formulas_are_set_without_a_script(mathml):
    made = mathml.to_mathml(r"\arg\min_\theta \bigl\{ \Bigl\lfloor F \Bigr\rfloor \bigr\}", "block")
    assert made.startswith("<math ")
    assert "<script" not in made
    with pytest.raises(ValueError, match="not known"):
        mathml.to_mathml(r"\nosuchcommand{x}", "inline")


def test_long_formulas_break_at_signs_outside_brackets(mathml):
    long = r"\delta(\varepsilon) = \Phi(\mu/2 - \varepsilon/\mu) - e^\varepsilon \Phi(-\mu/2) \le 1"
    pieces = mathml.breakable(mathml.to_mathml(long, "inline")).split("<wbr>")
    assert len(pieces) == 4
    assert all(piece.startswith("<math ") for piece in pieces)
    assert all('<mo form="infix">' in piece for piece in pieces[1:])
    assert "<wbr>" not in mathml.breakable(mathml.to_mathml(r"x_i^\top\theta", "inline"))


@pytest.mark.slow
def test_pages_open(built):
    reference = sorted((built / "reference").glob("*.html"))
    assert len(reference) > 30
    for path in reference:
        assert "autoclass::" not in path.read_text(), path.name
    front = (built / "reference" / "fastmix.PrivateLinearRegression.html").read_text()
    assert "Public bounds of the features" in front
    pages = [
        *sorted(built.glob("*.html")),
        *sorted((built / "proofs").glob("*.html")),
        *sorted((built / "books").glob("*.html")),
        *reference,
    ]
    for path in pages:  # nothing comes from elsewhere
        assert not re.findall(r"<(?:script|img|link)[^>]*(?:src|href)=.https?:", path.read_text())
    with browser.browser() as open_file:
        found = {
            (path.name, *screen): wrong
            for path in pages
            for screen in browser.SCREENS
            if (wrong := browser.faults(*open_file(path, *screen)))
        }
    assert found == {}
