"""The page in the documentation says what the generator says of the numbers beside it."""

from pathlib import Path

import pytest

from reproduction.report.conclusions import conclusions
from reproduction.report.page import write_docs
from reproduction.report.summary import UNKNOWN, read_summary

DOCS = Path(__file__).parents[3] / "docs"
BESIDE = DOCS / "reproduction"


@pytest.fixture(scope="module")
def published():
    """The results as far as they are kept beside the page: the mean risks, without their trials."""
    return read_summary(BESIDE)


def test_every_claim_stands_on_the_page(published):
    text = (DOCS / "reproduction.md").read_text()
    found = conclusions(published)
    assert len(found) > 20
    for claim in found:
        assert f"- **{claim.verdict}" in text
        assert f".** {claim.claim} {claim.finding}{claim.reason}\n" in text


def test_every_claim_that_does_not_hold_has_a_reason(published):
    failing = [claim for claim in conclusions(published) if claim.agrees is False]
    assert failing
    assert [claim.claim for claim in failing if claim.why == UNKNOWN] == []


def test_the_rest_of_the_page_is_the_generator_s(published, tmp_path, monkeypatch):
    drawn = {path.stem: "" for path in BESIDE.glob("*.svg")}
    monkeypatch.setattr("reproduction.report.page.read_summary", lambda folder: published)
    monkeypatch.setattr("reproduction.report.page.draw_figures", lambda summary: drawn)
    monkeypatch.setattr("reproduction.report.page.conclusions", lambda summary: [])
    monkeypatch.setattr("reproduction.report.page.inline_svg", lambda *_: "")
    monkeypatch.setattr("reproduction.report.page.save_figures", lambda drawn, folder: None)
    (tmp_path / "reproduction").mkdir()
    made = write_docs(BESIDE, tmp_path).read_text().splitlines()
    text = (DOCS / "reproduction.md").read_text().splitlines()
    assert len(made) > 80
    # Only the count of the claims differs, because none is made here.
    assert [line for line in made if line not in text] == [
        line for line in made if "claims that" in line or line.startswith("0 hold")
    ]
