"""The page in the documentation says what the generator says of the numbers beside it."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from reproduction.experiments import load_config
from reproduction.report.conclusions import conclusions
from reproduction.report.page import write_docs
from reproduction.report.summary import Mean, read_summary

DOCS = Path(__file__).parents[3] / "docs"
BESIDE = DOCS / "reproduction"


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """The results as far as they are kept beside the page: the mean risks, without their trials."""
    folder = tmp_path_factory.mktemp("published")
    for name in ("figure1", "speed", "datasets", "runs"):
        (folder / f"{name}.csv").write_text((BESIDE / f"{name}.csv").read_text())
    (folder / "config.json").write_text(json.dumps(load_config().identity()))
    risk, sizes = {"figure2": {}, "airline": {}}, {"figure2": {}, "airline": {}}
    with (BESIDE / "risk.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            sets, name = risk[row["experiment"]], row["set"]
            method = (row["method"], int(row["ratio"]) if row["ratio"] else None)
            mean = Mean(float(row["excess_risk"]), float(row["half_width_95"]), int(row["trials"]))
            epsilon = float(row["epsilon"]) if row["epsilon"] else None
            sets.setdefault(name, {}).setdefault(method, {})[epsilon] = mean
            sizes[row["experiment"]][name] = (int(row["n"]), int(row["d"]))
    return replace(read_summary(folder), risk=risk, sizes=sizes)


def test_every_claim_stands_on_the_page(published):
    text = (DOCS / "reproduction.md").read_text()
    # What is said of the sphere needs the noise of its sketches, which is not kept.
    figure2 = {n: m for n, m in published.risk["figure2"].items() if n != "sphere"}
    found = conclusions(replace(published, risk={**published.risk, "figure2": figure2}))
    assert len(found) > 20
    for claim in found:
        verdict = "Holds" if claim.agrees else "Does not hold"
        assert f"- **{verdict}.** {claim.claim} {claim.finding}\n" in text


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
