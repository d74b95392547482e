"""Pages and cards: they stand alone, escape what they are given, and open in a browser."""

from __future__ import annotations

import importlib.util
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import fastmix
from fastmix.accounting import BudgetAccountant, LaplaceEvent, NonPrivateEvent, Part, PrivacySpent
from fastmix.cli import main
from fastmix.show import Interval, curve_chart, interval_chart, plot
from fastmix.show.html import paragraphs, table
from fastmix.show.plot import privacy_curve
from fastmix.tables import read_bounds
from fastmix.tables.model import bound_pair
from fastmix.tables.report import fit_report

_spec = importlib.util.spec_from_file_location("browser", Path(__file__).parents[1] / "browser.py")
browser = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(browser)

NASTY = '<script>alert("x")</script>'


class Checker(HTMLParser):
    """Counts tags and notes what a page would load."""

    def __init__(self):
        super().__init__()
        self.open, self.loads, self.tags = [], [], set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag not in {"meta", "link", "line", "circle", "polyline"}:
            self.open.append(tag)
        self.loads += [v for k, v in attrs if k in ("src", "href") and not v.startswith("data:")]

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def check(html):
    checker = Checker()
    checker.feed(html)
    assert checker.open == []
    assert checker.loads == []
    assert "script" not in checker.tags
    return checker


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Reports of a private fit with odd names, of one without intervals and of a leaky one."""
    folder = tmp_path_factory.mktemp("reports")
    rng = np.random.default_rng(0)
    n = 3000
    a, b = rng.uniform(0, 1, n), rng.uniform(-5, 5, n)
    y = 3 * a - b + rng.normal(0, 1, n)
    np.savez(folder / "t.npz", **{"a": a, "b": b, "y": y, NASTY.replace("/", "\\"): a})
    nasty = '"' + NASTY.replace("/", "\\\\").replace('"', '\\"') + '"'
    (folder / "b.toml").write_text(
        f"[target]\ny = [-10, 10]\n[features]\na = [0, 1]\nb = [-5, 5]\n{nasty} = [0, 1]\n"
    )
    data = str(folder / "t.npz")
    common = ["fit", data, "--target", "y", "--delta", "1e-6"]
    public = ["--bounds", str(folder / "b.toml")]
    kinds = {
        "private": public,
        "plain": [*public, "--method", "dp_gd"],
        "leaky": ["--unsafe-bounds-from-data", "--features", "a,b"],
    }
    for kind, options in kinds.items():
        assert main([*common, *options, "--out", str(folder / kind)]) == 0
    # The command refuses an infinite epsilon; in Python it has a report as well.
    bounds = read_bounds(folder / "b.toml")
    model = fastmix.PrivateLinearRegression(
        epsilon=np.inf, bounds_X=bounds.feature_bounds(), bounds_y=(-10, 10)
    ).fit(np.column_stack([a, b, a]), y)
    _, model.privacy_ = bound_pair(model, bounds)
    (folder / "inf").mkdir()
    (folder / "inf" / "report.html").write_text(fit_report(model, bounds, seconds=59.0))
    return {kind: folder / kind / "report.html" for kind in (*kinds, "inf")}


@pytest.mark.parametrize("kind", ["private", "plain", "leaky", "inf"])
def test_a_report_stands_alone(reports, kind):
    text = reports[kind].read_text()
    check(text)
    assert ("NOT PRIVATE" in text) == (kind in ("leaky", "inf"))
    assert ("95% interval" in text) == (kind in ("private", "leaky"))
    assert "nan" not in text.lower().replace("nanobind", "")
    assert re.search(r"<dt>duration</dt><dd>under a minute</dd>", text)
    plan = text.partition("<h2>Plan</h2>")[2].partition("<h2>")[0]
    assert "gamma" not in plan
    assert ("noise of the curvature" in plan) == (kind in ("private", "leaky"))


@pytest.mark.parametrize("viewport", browser.VIEWPORTS)
@pytest.mark.parametrize("kind", ["private", "leaky"])
def test_a_report_opens_in_a_browser(reports, kind, viewport):
    with browser.open_page(reports[kind], viewport) as (page, errors):
        assert page.locator("h1").inner_text() == "Private regression of y"
        assert page.locator("svg").count() == 2
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0
        assert errors == []


def test_text_is_escaped():
    assert "<script" not in table([NASTY], [[NASTY]]) + paragraphs([NASTY, f"- {NASTY}"])
    assert "<script" not in interval_chart([Interval(NASTY, 1.0)], axis=NASTY)


def test_charts_take_any_finite_numbers():
    for values in ([0.0], [1e-12, 2e-12], [-1e9, 5.0], [3.0, 3.0]):
        svg = interval_chart([Interval("a", v, abs(v), abs(v) / 2) for v in values], axis="x")
        numbers = re.findall(r'x1="([-0-9.e]+)"', svg)
        assert all(0.0 <= float(x) <= 720.0 for x in numbers)
    assert "inf" not in interval_chart([Interval("a", 1.0, np.inf, np.inf)], axis="x")
    svg = curve_chart([(1e-8, 2.0), (1e-6, 1.0)], mark=(1e-6, 1.0), x_axis="d", y_axis="e")
    assert svg.count("<circle") == 1


def test_privacy_curve_decreases_through_the_certified_point():
    fit = small_fit()
    spent = fit.privacy_.spent
    points = privacy_curve(spent)
    assert len(points) > 6
    deltas, epsilons = zip(*points, strict=True)
    assert np.all(np.diff(deltas) > 0)
    assert np.all(np.diff(epsilons) <= 1e-12)
    assert np.interp(np.log(spent.delta), np.log(deltas), epsilons) <= spent.epsilon * 1.001


def small_fit(**parameters):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (300, 3)), rng.uniform(-1, 1, 300)
    given = {"bounds_X": (-1, 1), "bounds_y": (-1, 1), "delta": 1e-6, **parameters}
    return fastmix.PrivateLinearRegression(**given).fit(X, y)


def test_notebook_cards():
    fit = small_fit(inference=True)
    for html in (fit._repr_html_(), fit._repr_mimebundle_()["text/html"]):
        check(html)
        assert "differentially private" in html
        assert "±" in html
        assert "x2" in html
    assert "intercept" in fit._repr_html_()
    unfitted = fastmix.PrivateLinearRegression()
    assert "differentially private" not in unfitted._repr_html_()
    card = fit.privacy_._repr_html_()
    check(card)
    assert "Gaussian noise" in card
    assert "NOT PRIVATE" in small_fit(random_state=0)._repr_html_()
    assert "±" not in small_fit()._repr_html_()


def test_plots(tmp_path):
    import matplotlib.pyplot as plt

    fit = small_fit(inference=True)
    ax = plot.coefficients(fit, ["a", "b", "c"])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b", "c"]
    assert "95% interval" in ax.get_xlabel()
    ax = plot.privacy(fit.privacy_)
    assert ax.get_xscale() == "log"
    np.testing.assert_array_equal(ax.lines[1].get_xdata(), [fit.privacy_.delta])
    with pytest.raises(ValueError, match="names must have 3 entries"):
        plot.coefficients(fit, ["a"])
    with pytest.raises(ValueError, match="with noise"):
        plot.privacy(PrivacySpent([Part("x", [NonPrivateEvent()], 0.0)]))
    accountant = BudgetAccountant(2.0, 1e-6)
    for _ in range(3):
        accountant.spend(PrivacySpent([Part("mean", [LaplaceEvent(4.0)], 0.0)]))
    ax = plot.budget(accountant)
    assert ax.lines[0].get_ydata()[-1] == pytest.approx(accountant.total().epsilon)
    plt.close("all")
