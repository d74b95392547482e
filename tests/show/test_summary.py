"""The table of a regression: text, HTML and data frame, and what stands in it."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import fastmix
from fastmix.estimators.summaries import clipping_notes
from fastmix.show import Interval, RegressionSummary, summarise


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.uniform(-1, 1, (8_000, 3)), columns=["age", "<b>", "twin"])
    X["twin2"] = X["twin"]
    y = X.to_numpy() @ [1.0, -0.5, 0.0, 0.0] + rng.normal(0, 0.3, 8_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fastmix.PrivateLinearRegression(
            epsilon=4.0,
            delta=1e-6,
            bounds_X=(-1, 1),
            bounds_y=(-3, 3),
            random_state=0,
        ).fit(X, y)


def test_numbers_are_those_of_a_normal_law(model):
    made = model.summary(0.9)
    assert isinstance(made, RegressionSummary)
    first = made.lines[0]
    assert first.z == pytest.approx(model.coef_[0] / model.coef_std_[0])
    assert first.p_value == pytest.approx(2 * stats.norm.sf(abs(first.z)))
    np.testing.assert_allclose((first.low, first.high), model.conf_int(0.9)[0])
    assert made.header == ["coef", "std err", "z", "P>|z|", "[0.05", "0.95]", "over range"]
    assert first.over_range == 2.0 * first.coef
    frame = made.to_frame()
    assert frame.index.tolist() == ["age", "<b>", "twin", "twin2", "intercept"]
    np.testing.assert_array_equal(frame["coef"][:4], model.coef_)
    assert frame["identified"].tolist() == [True, True, False, False, True]


def test_text_and_html(model):
    text = str(model.summary())
    lines = text.split("\n")
    assert "[0.025     0.975]" in text
    assert "No. observations: 8,000" in text
    assert [line.split()[0] for line in lines[8:11]] == ["age", "<b>", "intercept"]
    assert "2 of 4 effects are hidden by noise, though the model uses them: twin, twin2." in text
    assert "try more rows, epsilon 8." in text
    assert "They took 12% of the privacy budget." in text
    assert len({len(line) for line in lines if set(line) == {"="}}) == 1
    html = model.summary()._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>" not in html.partition("<dl")[2]
    assert "nan" not in html


def test_without_standard_errors():
    made = summarise([Interval("a", 1.0), Interval("b", 2.0)], title="t", facts=[("n", "3")])
    assert made.header == ["coef"]
    assert "released nothing" in str(made)
    assert list(made.to_frame().columns) == ["coef"]
    assert made.to_dict()["coefficients"][0]["std_err"] is None


def test_a_standard_error_of_zero_and_an_infinite_one():
    made = summarise([Interval("a", -1.0, 0.0), Interval("b", 2.0, math.inf)], title="t", facts=[])
    assert made.lines[0].z == -math.inf
    assert made.lines[0].p_value == 0.0
    assert made.lines[1].p_value == 1.0
    assert not made.lines[1].identified


def test_odds_ratios_have_a_table_of_their_own():
    found = [
        Interval("large", 1.0, 0.1),
        Interval("days", 2.5e-4, 1e-5),
        Interval("b", 2.0, math.inf),
    ]
    made = summarise(found, title="t", facts=[], odds=True)
    assert max(map(len, str(made).split("\n")[:-1])) <= 80
    html = made.html_table()
    assert html.count("<table>") == 2
    first, second = html.split("</table>")[:2]
    assert "odds ratio" not in first
    assert first.count("<th ") == 7
    assert second.count("<th ") == 4
    assert "<td>2.718</td><td>2.234</td><td>3.307</td>" in second
    assert "<td>1.0002500</td><td>1.0002304</td><td>1.0002696</td>" in second
    assert "<td>b</td>" not in html
    frame = made.to_frame()
    assert frame.loc["days", "odds ratio"] == math.exp(2.5e-4)
    plain = summarise([Interval("a", 1e-9), Interval("b", 800.0)], title="t", facts=[], odds=True)
    assert plain.html_table().count("<table>") == 1
    assert "1+1.00e-09" in str(plain)


def test_references_are_named_where_effects_are_shown():
    for std, named in ((0.1, True), (math.inf, False)):
        found = [Interval("ward=b", 1.0, std), Interval("intercept", 1.0, std)]
        made = summarise(found, title="t", facts=[], widths=[1.0], references={"ward": "a"})
        assert ("ward=a" in str(made)) == named
        assert ("Noise is too large" in str(made)) != named


def test_level_must_be_a_probability(model):
    with pytest.raises(ValueError, match="level must lie"):
        model.summary(1.0)


@pytest.mark.parametrize("public", [True, False])
@pytest.mark.filterwarnings("ignore")
def test_a_summary_says_whom_the_fit_protects(tmp_path, public):
    X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    asked = {"bounds_X": (-1, 1), "bounds_y": (-1, 1), "delta": 1e-6, "random_state": 0}
    model = fastmix.PrivateLinearRegression(public_rows=public, **asked)
    model.fit(X, X[:, 0], groups=np.arange(2000) // 2, max_rows_per_group=3)
    many = "1,000 " if public else ""
    assert dict(model.summary().facts)["Protects"] == f"{many}persons with up to 3 rows"
    assert ("No. observations: 2,000" in str(model.summary())) == public
    assert ("No. persons: about " in str(model.summary())) != public
    model.save(tmp_path / "m")
    loaded = dict(fastmix.load(tmp_path / "m").summary().facts)
    assert loaded == dict(model.summary().facts)
    assert "No. persons" in loaded or public


def test_the_method_has_one_name(tmp_path):
    X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    model = fastmix.PrivateLogisticRegression(bounds_X=(-1, 1), classes=[0, 1], delta=1e-6)
    model.fit(X, (X[:, 0] > 0).astype(int)).save(tmp_path / "m")
    for made in (model, fastmix.load(tmp_path / "m")):
        facts = dict(made.summary().facts)
        assert facts["Method"] == "logistic"
        assert "Protects" not in facts


def test_long_names_keep_the_end_that_tells_levels_apart():
    names = [f"neighbourhood_of_residence=unit_{j}" for j in range(2)]
    text = str(summarise([Interval(name, 1.0) for name in names], title="", facts=[]))
    shown = [line.split()[0] for line in text.split("\n") if "unit_" in line]
    assert [name[-6:] for name in shown] == ["unit_0", "unit_1"]
    assert all(len(name) == 32 for name in shown)


def test_classes_share_the_lines_of_a_short_table():
    names = [f"{label}: x{j}" for label in "abc" for j in range(20)]
    found = [Interval(name, float(j % 20 + 1), 0.1) for j, name in enumerate(names)]
    found += [Interval(f"{label}: intercept", 0.0, 1.0) for label in "abc"]
    made = summarise(found, title="t", facts=[], widths=[1.0] * 60, several=3)
    lines = made.text(longest=30).splitlines()
    for label in "abc":
        own = [line.split()[1] for line in lines if line.startswith(f"{label}: ")]
        assert own == [*(f"x{j}" for j in range(19, 9, -1)), "intercept"]
    assert "and 30 more; --all shows them" in lines
    assert len(made.shown) == 63


def test_clipping_is_told_where_it_may_move_coefficients():
    facts = {"n_samples": 10_000, "chosen": {"clipped": 0.0137, "clipping_bias": 0.5}}
    (said,) = clipping_notes(facts)
    assert said.startswith("The fit clipped about 137 of 10,000 records")
    for quiet in ({}, {"clipped": 0.0137, "clipping_bias": 0.2}):
        assert clipping_notes({**facts, "chosen": quiet}) == []
    of_classes = {"clipped": [0.001, 0.0137], "clipping_bias": [0.1, 0.5]}
    assert clipping_notes({**facts, "chosen": of_classes}) == [said]
