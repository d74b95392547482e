"""Pages and cards: they stand alone, escape what they are given, and open in a browser."""

from __future__ import annotations

import importlib.util
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

import fastmix
from fastmix.accounting import BudgetAccountant, LaplaceEvent, NonPrivateEvent, Part, PrivacySpent
from fastmix.cli import main
from fastmix.estimators.saving import model_document
from fastmix.files.report import fit_report
from fastmix.schema import PublicBounds, read_bounds
from fastmix.show import Interval, curve_chart, interval_chart, plot
from fastmix.show.html import paragraphs, table
from fastmix.show.plot import privacy_curve

_spec = importlib.util.spec_from_file_location("browser", Path(__file__).parents[1] / "browser.py")
browser = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(browser)

NASTY = '<script>alert("x")</script>'
#: The column of the largest effect: a name that does not fit on a phone.
LONG = "weekly_working_hours_in_the_main_occupation_in_minutes"


class Checker(HTMLParser):
    """Counts tags and notes what a page would load."""

    def __init__(self):
        super().__init__()
        self.open, self.loads, self.tags = [], [], set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag not in {"meta", "link", "wbr"}:
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
    columns = {"a": a, LONG: b, "y": y, NASTY.replace("/", "\\"): a}
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "t.parquet")
    nasty = '"' + NASTY.replace("/", "\\\\").replace('"', '\\"') + '"'
    (folder / "b.toml").write_text(
        f"[target]\ny = [-10, 10]\n[features]\na = [0, 1]\n{LONG} = [-5, 5]\n{nasty} = [0, 1]\n"
    )
    data = str(folder / "t.parquet")
    common = ["fit", data, "--target", "y", "--epsilon", "5", "--delta", "1e-6"]
    public = ["--bounds", str(folder / "b.toml")]
    kinds = {
        "private": public,
        "plain": [*public, "--method", "dp_gd"],
        "leaky": ["--unsafe-bounds-from-data", "--features", f"a,{LONG}"],
    }
    for kind, options in kinds.items():
        assert main([*common, *options, "--out", str(folder / kind)]) == 0
    # The command refuses an infinite epsilon; in Python it has a report as well.
    bounds = read_bounds(folder / "b.toml")
    model = fastmix.PrivateLinearRegression(
        epsilon=np.inf, bounds_X=bounds.feature_bounds(), bounds_y=(-10, 10)
    ).fit(np.column_stack([a, b, a]), y)
    model.schema_ = bounds
    _, model.privacy_ = model_document(model)
    (folder / "inf").mkdir()
    (folder / "inf" / "report.html").write_text(fit_report(model))
    return {kind: folder / kind / "report.html" for kind in (*kinds, "inf")}


@pytest.mark.parametrize("kind", ["private", "plain", "leaky", "inf"])
def test_a_report_stands_alone(reports, kind):
    text = reports[kind].read_text()
    check(text)
    assert ("NOT PRIVATE" in text) == (kind in ("leaky", "inf"))
    assert ("95% interval" in text) == (kind in ("private", "leaky"))
    assert "nan" not in text.lower().replace("nanobind", "")
    plan = text.partition("<h2>Plan</h2>")[2].partition("<h2>")[0]
    assert "gamma" not in plan
    assert ("noise of the curvature" in plan) == (kind in ("private", "leaky"))


def test_pages_open_in_a_browser(reports, wide, cards, tmp_path):
    with browser.browser() as open_file:
        for kind, path in {**reports, "wide": wide, "cards": cards}.items():
            # Reports of one form differ in words only: one screen does for the rarer ones.
            for screen in browser.SCREENS[3 if kind in ("plain", "leaky", "inf") else 0 :]:
                page, messages = open_file(path, *screen)
                if kind in reports:
                    assert page.locator("h1").inner_text() == "Private regression of y"
                    assert page.locator("figure").count() == (1 if kind == "inf" else 2)
                height = page.evaluate("document.documentElement.scrollHeight")
                assert height < (4_000 if "desktop" in screen else 6_000), (kind, screen)
                page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
                assert browser.faults(page, messages) == [], (kind, screen)
        # What is wrong with a page is seen.
        bad = tmp_path / "page.html"
        box = "<div style='width: 30px; overflow: hidden; white-space: nowrap'>hidden text</div>"
        drawing = "<svg width='90' height='20'><text y='9'>one</text><text y='9'>two</text></svg>"
        bad.write_text(
            f"<body style='overflow-x: hidden'>{box}{drawing}<script>console.log('said')</script>"
            "<p style='position: absolute; left: 1270px; white-space: nowrap'>far out</p>"
        )
        found = browser.faults(*open_file(bad))
        for fault in ("hidden: hidden text", "outside: far out", "overlap: one / two", "said"):
            assert fault in found


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """The report of a fit of 281 columns, some with long names, with a private score."""
    rng = np.random.default_rng(1)
    n, d = 400, 281
    X = rng.uniform(0, 1, (n, d))
    model = fastmix.AdaSSP(
        epsilon=1.0, delta=1e-6, bounds_X=(0, 1), bounds_y=(0, 10), inference=True
    ).fit(X, 9.0 * X[:, 0])
    features = {"z" * 70 if j == 3 else f"column_{j}": [0, 1] for j in range(d)}
    bounds = PublicBounds.from_dict({"target": {"y": [0, 10]}, "features": features})
    model.schema_ = bounds
    _, model.privacy_ = model_document(model)
    path = tmp_path_factory.mktemp("wide") / "report.html"
    path.write_text(fit_report(model))
    return path


def test_a_wide_table_makes_a_short_page(wide):
    text = wide.read_text()
    check(text)
    first = text.partition("Show the other 251 columns")[0]
    assert first.count('class="effect"') == 30
    assert text.count('class="effect"') == 281
    assert "Show all 282 coefficients" in text
    assert "z" * 70 in text


@pytest.fixture(scope="module")
def cards(tmp_path_factory):
    """The cards of a notebook on one page."""
    fit = small_fit(inference=True)
    shown = (fit, fit.summary(), fit.privacy_, small_fit(random_state=0), small_fit().summary())
    path = tmp_path_factory.mktemp("cards") / "cards.html"
    cells = "".join(f"<div>{each._repr_html_()}</div>" for each in shown)
    path.write_text(f'<!doctype html><link rel="icon" href="data:,"><body>{cells}</body>')
    return path


def test_text_is_escaped():
    assert "<script" not in table([NASTY], [[NASTY]]) + paragraphs([NASTY, f"- {NASTY}"])
    assert "<script" not in interval_chart([Interval(NASTY, 1.0)], axis=NASTY)


def test_charts_take_any_finite_numbers():
    for values in ([0.0], [1e-12, 2e-12], [-1e9, 5.0], [3.0, 3.0]):
        svg = interval_chart([Interval("a", v, abs(v), abs(v) / 2) for v in values], axis="x")
        numbers = re.findall(r' c?x[12]?="([-0-9.e]+)%"', svg)
        assert len(numbers) > 4
        assert all(0.0 <= float(x) <= 100.0 for x in numbers)
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


def small_fit(n=300, **parameters):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (n, 3)), rng.uniform(-1, 1, n)
    given = {"bounds_X": (-1, 1), "bounds_y": (-1, 1), "delta": 1e-6, **parameters}
    return fastmix.PrivateLinearRegression(**given).fit(X, y)


def test_notebook_cards():
    fit = small_fit(20_000, inference=True)
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
    fit.coef_std_[:], fit.intercept_std_ = np.inf, np.inf
    assert "Noise is too large to separate the effects" in fit._repr_html_()
    assert "± inf" not in fit._repr_html_()


def test_plots(tmp_path):
    import matplotlib.pyplot as plt

    fit = small_fit(inference=True)
    ax = plot.coefficients(fit)
    lines = [line for line in fit.summary().shown if line.name != "intercept"]
    assert [label.get_text() for label in ax.get_yticklabels()] == [each.name for each in lines]
    assert ax.get_xlabel() == "effect across the public range, 95% interval"
    np.testing.assert_allclose(ax.lines[0].get_xdata(), [each.over_range for each in lines])
    ax = plot.privacy(fit.privacy_)
    assert ax.get_xscale() == "log"
    np.testing.assert_array_equal(ax.lines[1].get_xdata(), [fit.privacy_.delta])
    with pytest.raises(ValueError, match="with noise"):
        plot.privacy(PrivacySpent([Part("x", [NonPrivateEvent()], 0.0)]))
    accountant = BudgetAccountant(2.0, 1e-6)
    for _ in range(3):
        accountant.spend(PrivacySpent([Part("mean", [LaplaceEvent(4.0)], 0.0)]))
    ax = plot.budget(accountant)
    assert ax.lines[0].get_ydata()[-1] == pytest.approx(accountant.total().epsilon)
    plt.close("all")
