"""The documentation builds without warnings, and its pages open in a browser without errors."""

from __future__ import annotations

import importlib.util
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
    pytest.importorskip("myst_parser", reason="no myst-parser: run `make docs`")
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


@pytest.mark.slow
def test_pages_open(built):
    pages = sorted(built.rglob("*.html"))
    assert len(pages) > 20
    with browser.browser() as open_file:
        for path in pages:
            for screen in browser.SCREENS:
                page, messages = open_file(path, *screen)
                assert browser.faults(page, messages) == [], (path.name, screen)
