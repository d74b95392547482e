"""A dry run forecasts the error in the units of the target, from public sizes and bounds."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET

import pytest

from fastmix.methods import METHODS, Sizes, Target, plan_fit
from fastmix.methods.forecast import outlook
from fastmix.planning import dry_run


@pytest.fixture(scope="module")
def run():
    return dry_run(5_000, 4, (0, 200), 0.7, 1e-6, target="<income>", unit="EUR")


def test_errors_are_the_forecast_in_the_units_of_the_target(run):
    method = METHODS[run.method]()
    planned = plan_fit(method, Sizes(5_000, 5, True, True), Target(0.7, 1e-6))
    expected = outlook(method, planned, 5_000, 5)
    assert run.asked.typical == pytest.approx(100.0 * math.sqrt(expected.typical))
    assert run.asked.low == pytest.approx(100.0 * math.sqrt(expected.low))
    assert run.asked.high == pytest.approx(100.0 * math.sqrt(expected.high))


def test_what_other_choices_give(run):
    assert [e.epsilon for e in run.by_epsilon] == [0.1, 0.3, 0.7, 1.0, 3.0, 10.0]
    typical = [e.typical for e in run.by_epsilon]
    assert typical == sorted(typical, reverse=True)
    rows, bounds, columns = run.others
    assert rows.typical < run.asked.typical
    assert bounds.typical == pytest.approx(run.asked.typical / 2)
    assert bounds.what == "<income> within bounds half as wide"
    assert columns.what == "2 of 4 columns"
    assert run.spread == pytest.approx(100 / 3)


def test_the_page_stands_alone_and_its_picture_is_whole(run):
    page = run.page()
    assert "<income>" not in page
    assert "&lt;income&gt;" in page
    assert "http" not in page
    chart = page[page.index("<svg") : page.rindex("</svg>") + 6]
    labels = list(ET.fromstring(chart).iter("text"))
    assert len(labels) > 8
    for text in labels:  # places are percentages
        assert 0 <= float(text.get("x").rstrip("%")) <= 100, text.text
        assert 0 <= float(text.get("y").rstrip("%")) <= 100, text.text
    assert "EUR" in str(run)
    assert "<table" in run._repr_html_()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((0, 4, (0, 1)), "n must"),
        ((10, 4, (1, 0)), "width of bounds_y must"),
        ((10, 4, (0, 1), 0.0), "epsilon must"),
    ],
)
def test_what_is_refused(arguments, complaint):
    with pytest.raises(ValueError, match=complaint):
        dry_run(*arguments)
