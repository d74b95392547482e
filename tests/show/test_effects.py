"""What a report says was learned: the sentence on top, and the chart of effects."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import fastmix
from fastmix.engine.scores import Score
from fastmix.estimators.evaluation import PrivateScores
from fastmix.estimators.saving import model_document
from fastmix.files.doubts import low_r2
from fastmix.files.report import fit_report, lead
from fastmix.schema import PublicBounds
from fastmix.show import Interval, summary_title
from fastmix.show.effects import effects_part
from fastmix.show.html import breakable, number
from fastmix.show.svg import chart_span, clear, interval_chart, large_ones, tick_labels

BOUNDS = PublicBounds.from_dict(
    {"target": {"y": {"bounds": [0, 1], "unit": "km"}}, "features": {"a": [0, 1], "b": [0, 1]}}
)


def names(html):
    return re.findall(r'class="name">([^<]+)<', html.replace("<wbr>", ""))


def test_clear_effects_come_first_by_size():
    found = [
        Interval("small", 1.0, 0.1, 0.05),
        Interval("noise", 50.0, 40.0, 39.0),
        Interval("hidden", 9.0, np.inf, 1.0),
        Interval("large", -2.0, 0.1, 0.05),
        Interval("half", 1.5, 0.1, 0.05),
    ]
    html = effects_part(found, [1.0, 1.0, 1.0, 1.0, 2.0], axis="x")
    assert names(html) == ["half", "large", "small", "noise"]
    assert "3 of 5 columns have a clear effect" in html
    assert "The largest is that of half" in html
    assert "Hidden by noise: 1 of 5 columns" in html
    assert html.index("may be zero") < html.index("noise</span><svg height")
    _, _, last = html.partition("Hidden by noise")
    assert "<li>hidden</li>" in last
    assert "9" not in last.partition("</details>")[0]  # its number is noise


def test_noise_does_not_set_the_axis():
    good = [Interval(f"g{j}", 1.0, 0.1) for j in range(5)]
    noisy = [Interval(f"n{j}", 60.0, 50.0) for j in range(200)]
    low, high = chart_span([*good, *noisy])
    assert (low, high) == pytest.approx((0.0, 1.196))
    # One in twenty intervals excludes zero by chance; among 200 that sets no axis either.
    assert chart_span([*good, *noisy, Interval("chance", 120.0, 50.0)]) == (low, high)
    chart = interval_chart([*good, *noisy[:1]], axis="x", span=(low, high))
    assert chart.count("<path") == 2  # both ends of one interval go beyond the axis
    assert chart.count("<circle") == 5
    assert chart_span(noisy)[1] == pytest.approx(2 * 1.96 * 50.0)
    assert chart_span([Interval("a", 3.0), Interval("b", -2.0)]) == (-2.0, 3.0)


def test_every_clear_effect_is_on_its_axis():
    """Negative ones and those that stand out by chance too; the others have their own axis."""
    found = [
        *(Interval(f"g{j}", 1.0, 0.1, 0.1) for j in range(5)),
        Interval("weak", -20.0, 10.0, 9.0),
        *(Interval(f"n{j}", 60.0, 50.0, 40.0) for j in range(20)),
    ]
    html = effects_part(found, [1.0] * len(found), axis="x")
    sure, _, rest = html.partition("<h3>Effects that may be zero</h3>")
    assert sure.count("<circle") == 6
    assert rest.count("<circle") == 20
    assert "<path" not in rest
    labels = [re.findall(r">(-?[0-9,]+)</text>", part) for part in (sure, rest)]
    assert "0" in labels[0]
    assert "-20" in labels[0]
    assert labels[1][0] == "-200"
    assert labels[1][-1] == "200"


def test_effects_are_drawn_where_none_is_identified():
    found = [Interval(f"c{j}", float(j - 20), np.inf, 1.0) for j in range(40)]
    html = effects_part(found, [1.0] * len(found), axis="x")
    assert "Noise is too large to separate" in html
    assert "--no-intervals" in html
    assert names(html)[:3] == ["c0", "c1", "c39"]
    assert html.count("<circle") == 40
    assert "Show the other 10 columns" in html
    for word in ("Not identified", "±", "inf", "95%", "clear effect", "released nothing"):
        assert word not in html.replace("inference=False", "")


@pytest.mark.parametrize("std", [None, np.inf])
def test_values_outside_the_lists_come_last_without_intervals(std):
    found = [
        Interval("ward=b", 1.0, std),
        Interval("ward=other", 9.0, std),
        Interval("a", 2.0, std),
    ]
    html = effects_part(found, [1.0] * 3, axis="x", outside=[False, True, False])
    assert names(html) == ["a", "ward=b", "ward=other"]
    _, _, last = html.partition("<h3>Values outside the lists</h3>")
    assert last.index("If no row has such a value, this number is noise.") < last.index("<details>")
    assert last.index("<details>") < last.index("ward=<wbr>other")


def test_values_outside_the_lists_with_intervals_stay_where_they_are():
    found = [Interval("ward=b", 1.0, 0.1, 0.1), Interval("ward=other", 9.0, 0.1, 0.1)]
    html = effects_part(found, [1.0] * 2, axis="x", outside=[False, True])
    assert names(html) == ["ward=other", "ward=b"]
    assert "outside the lists" not in html


def test_a_report_knows_which_columns_are_outside_the_lists():
    """Those of terms too; a list that names "other" itself has none."""
    features = {"a": [0, 1], "c": ["u", "v"], "d": ["u", "other", "w"], "a*c": True}
    bounds = PublicBounds.from_dict({"target": {"y": [0, 1]}, "features": features})
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (4000, len(bounds.columns())))
    given = {"bounds_y": (0, 1), "bounds_X": (0, 1), "delta": 1e-6}
    model = fastmix.PrivateLinearRegression(inference=False, **given).fit(X, X[:, 0])
    model.schema_ = bounds
    _, model.privacy_ = model_document(model)
    _, _, last = fit_report(model).partition("<h3>Values outside the lists</h3>")
    assert sorted(names(last)) == ["c=other", "c=other*a"]


def test_two_parts_of_an_error_are_drawn():
    chart = interval_chart([Interval("a", 10.0, 5.0, 3.0)], axis="x", span=(-10.0, 30.0))
    widths = dict(re.findall(r'class="(noise|sampling)" x="[^"]+" width="([0-9.]+)%" y', chart))
    assert float(widths["noise"]) / float(widths["sampling"]) == pytest.approx(3.0 / 4.0, abs=0.01)
    assert "privacy noise makes 36% of the error" in chart
    assert not clear(Interval("a", 1.0, 1.0))
    assert clear(Interval("a", np.float64(3.0), np.float64(1.0))) is True


def fitted(kind=fastmix.PrivateLinearRegression, spread=0.0, **given):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (4000, 2))
    y = X[:, 0] + spread * rng.standard_normal(len(X))
    if "classes" in given:
        y = (y > 0.5).astype(float)
    else:
        given["bounds_y"] = (0, 1)
    model = kind(**{"bounds_X": (0, 1), "delta": 1e-6, **given}).fit(X, y)
    model.schema_ = BOUNDS
    return model


def test_the_sentence_on_top():
    model = fitted(score_share=0.2)
    share = max(0.0, model.scores_["r2"])
    assert lead(model, BOUNDS) == (
        f"From 4,000 rows this model learned to predict y from 2 columns: it explains about "
        f"{share:.0%} of the variance. Seeing the model changes the odds that any one row was in "
        "the data by a factor of at most 2.72, except with probability 1e-06."
    )
    sure = fitted(spread=0.1, inference=True, epsilon=2.0)
    said = f"are typically off by about {number(sure.residual_std_, 2)} km. Seeing the model"
    assert said in lead(sure, BOUNDS)
    assert "how well it predicts was not released" in lead(fitted(), BOUNDS)
    assert lead(fitted(random_state=0), BOUNDS).endswith("NOT PRIVATE, so do not publish it.")
    with pytest.warns(fastmix.errors.WeakPrivacyWarning):
        weak = fitted(epsilon=50.0)
    assert "The guarantee is weak" in lead(weak, BOUNDS)
    noisy = fitted(public_rows=False)
    assert lead(noisy, BOUNDS).startswith(f"From about {noisy.privacy_.data['n_samples']:,} rows")


def test_columns_coefficients_and_what_categories_are_compared_with():
    described = {"a": [0, 1], "land": {"categories": ["<NRW>", "Hessen"]}}
    bounds = PublicBounds.from_dict({"target": {"y": [0, 1]}, "features": described})
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(0, 1, 4000), *np.eye(3)[rng.integers(0, 3, 4000)].T[1:]])
    for intercept in (True, False):
        given = {"bounds_y": (0, 1), "bounds_X": (0, 1), "delta": 1e-6, "fit_intercept": intercept}
        rows = X if intercept else np.column_stack([X[:, :1], 1 - X[:, 1:].sum(axis=1), X[:, 1:]])
        model = fastmix.PrivateLinearRegression(inference=True, **given).fit(rows, X[:, 0])
        model.schema_ = bounds
        _, model.privacy_ = model_document(model)
        page = fit_report(model)
        assert "from 2 columns" in page
        assert "<dt>columns</dt><dd>2</dd>" in page
        count = "3 and the intercept" if intercept else "4"
        assert f"<dt>coefficients</dt><dd>{count}</dd>" in page
        assert not re.search(r"[0-9] columns have", page)
        assert ("land=&lt;NRW&gt;." in page) == intercept
        assert ("compared with the first one of their category" in page) == intercept


def test_a_spread_that_noise_may_hide_is_not_said():
    sure = fitted(spread=0.1, inference=True, epsilon=2.0)
    assert sure.residual_std_identified_
    assert sure.residual_std_ == pytest.approx(0.09, rel=0.2)  # targets are clipped
    assert "Residual std" in str(sure.summary())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        hidden = fitted(spread=0.1, inference=True, epsilon=0.02)
    for model in (hidden, fitted(fastmix.AdaSSP, spread=0.1, inference=True)):
        assert model.residual_std_ > 0.0
        assert not model.residual_std_identified_
        assert "how well it predicts was not released" in lead(model, BOUNDS)
        assert "Residual std" not in str(model.summary())


def test_families():
    model = fitted(fastmix.PrivateQuantileRegressor, quantile=0.9)
    assert "to predict the 90% quantile of y from" in lead(model, BOUNDS)
    assert "change in the 90% quantile of y across" in fit_report(model)
    model = fitted(fastmix.PrivateLogisticRegression, classes=(0.0, 1.0))
    page = fit_report(model)
    assert "<h1>Private classification of y</h1>" in page
    assert "log-odds of y = 1" in page


def test_a_score_far_below_zero_says_that_low_r2():
    good, bad = (PrivateScores({"r2": Score(value, 0.1)}, None, 100) for value in (-0.1, -3.0))
    assert low_r2(None) == low_r2(good) == ""
    assert "Your bounds look wrong" in low_r2(bad)


def test_a_title_names_family_quantile_and_score():
    assert summary_title("linear", "y") == "Private linear regression of y"
    assert summary_title("huber", "y", r2=0.5) == "Private robust regression of y, private R² 0.50"
    title = summary_title("quantile", "y", quantile=0.9)
    assert title == "Private quantile regression of y (90%)"


@pytest.mark.parametrize(
    ("values", "count"),
    [([40, 2, -1.5, 1], 1), ([-90, 80, 3, 2, 1], 2), ([4, 3, 2, 1], 0), ([9, 1], 0), ([], 0)],
)
def test_few_large_effects_have_an_axis_of_their_own(values, count):
    assert large_ones(values) == count
    found = [Interval(f"c{j}", float(value), 0.1, 0.05) for j, value in enumerate(values)]
    made = effects_part(found, [1.0] * len(found), axis="change")
    assert ("Clear effects, the others" in made) == (count > 0)


def test_names_break_behind_signs():
    assert breakable("city_of=<Bonn>") == "city_<wbr>of=<wbr>&lt;Bonn&gt;"


@pytest.mark.parametrize(
    ("ticks", "labels"),
    [
        ([-0.5, 0.0, 0.5], ["-0.5", "0.0", "0.5"]),
        ([-500.0, 0.0, 500.0], ["-500", "0", "500"]),
        ([0.0, 50_000.0, 100_000.0], ["0", "50,000", "100,000"]),
        ([-500_000.0, 0.0, 500_000.0, 1e6, 1.5e6], ["-0.5M", "0", "0.5M", "1M", "1.5M"]),
        ([0.0, 2e-7, 4e-7], ["0", "2e-07", "4e-07"]),
        ([0.0, 5e9, 1e10], ["0", "5.0e+09", "1.0e+10"]),
    ],
)
def test_labels_of_an_axis_have_one_form(ticks, labels):
    assert tick_labels(ticks) == labels


@pytest.mark.parametrize(
    ("value", "std", "shown"),
    [
        (-350_745.0, 40_325.0, "-351,000 ± 79,000"),
        (1_304_213.0, 53_000.0, "1,300,000 ± 100,000"),
        (-366.3, 9.1, "-366 ± 18"),
        (-4.383, 0.207, "-4.38 ± 0.41"),
        (0.17, 0.286, "0.170 ± 0.56"),
    ],
)
def test_charts_leave_out_digits_that_the_error_hides(value, std, shown):
    assert f">{shown}<" in interval_chart([Interval("x", value, std)], axis="change")
