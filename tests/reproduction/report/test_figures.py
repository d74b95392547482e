"""Figures are drawn from results, as text that any colour scheme can show."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

from reproduction.report.figures import draw_figures, inline_svg, save_figures


def test_every_curve_has_its_name_and_panel(drawn, tmp_path):
    assert set(drawn) == {
        "figure1-10000", "figure1-100000", "figure2-black_friday", "figure2-sphere"
    }  # fmt: skip
    for label in ("IHM, paper", "FastIHM, paper, r = 800", "fastmix by default"):
        assert f">{label}</text>" in drawn["figure2-sphere"]
    assert "FastIHS" not in drawn["figure2-sphere"]  # it has not converged
    assert ">FastIHS (not private): 1e-07</text>" in drawn["figure2-black_friday"]  # far below
    save_figures(drawn, tmp_path / "figures")
    for path in (tmp_path / "figures").iterdir():
        text = path.read_text()
        assert ET.fromstring(text).tag.endswith("svg")
        assert "#010203" not in text
        assert '<rect width="100%" height="100%" fill="#ffffff"/>' in text


def test_figures_repeat_themselves(summary, drawn):
    sphere = {"figure2": {"sphere": summary.risk["figure2"]["sphere"]}, "airline": {}}
    again = draw_figures(replace(summary, figure1={}, risk=sphere))
    assert again == {"figure2-sphere": drawn["figure2-sphere"]}


def test_inlined_figures_share_no_identifier(drawn):
    seen = set()
    for name, svg in drawn.items():
        inlined = inline_svg(name, svg, "a title")
        root = ET.fromstring(inlined)
        assert root.get("aria-label") == "a title"
        assert root.get("width") is None
        assert "currentColor" in inlined
        assert "#010203" not in inlined
        own = set(re.findall(r'\bid="([^"]*)"', inlined))
        assert own.isdisjoint(seen)
        seen |= own
        references = set(re.findall(r'href="#([^"]*)"', inlined))
        references |= set(re.findall(r"url\(#([^)]*)\)", inlined))
        assert references
        assert references <= own
