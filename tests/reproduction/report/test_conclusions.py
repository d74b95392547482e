"""A claim holds when the results say so, and does not when they do not."""

from dataclasses import replace

import pytest

from reproduction.report.conclusions import conclusions
from reproduction.report.published import relative_difference, within
from reproduction.report.summary import read_summary


def find(folder, text):
    found = [c for c in conclusions(read_summary(folder)) if text in c.claim]
    assert found, text
    return found


def test_a_world_in_which_the_paper_is_right(world):
    folder = world
    for text in ("GaussMix needs less", "two orders of magnitude", "loss shrinks", "matches IHM",
                 "needs no noise", "not monotone", "outperforms IHM", "keeps a gap", "is faster",
                 "our claim"):  # fmt: skip
        assert all(c.agrees for c in find(folder, text)), text
    (sphere,) = [c for c in find(folder, "every statistic") if "sphere" in c.claim]
    assert sphere.agrees
    (rossman,) = [c for c in find(folder, "every statistic") if "Rossman" in c.claim]
    assert not rossman.agrees
    assert "Off: lambda_max." in rossman.finding
    assert "(+2.50%)" in rossman.finding
    assert "lambda_max / lambda_min 1.03096 against 1.02916 (+0.18%)" in sphere.finding
    assert "0.0459 against 0.045 (+2.00%, the same when cut to its digits)" in sphere.finding


def test_a_baseline_that_has_not_converged_raises_an_alarm(world, results, paper_risk):
    """FastIHS of the sphere is above a private method; a lower line is none to alarm about."""
    (alarm,) = find(world, "comparison with FastIHS")
    assert alarm.agrees is None
    assert alarm.verdict == "Alarm"
    assert "sphere" in alarm.claim
    assert "has not converged" in alarm.finding
    assert "optimum, more than fastmix by default at ε = 1 (1.0e-05)." in alarm.finding

    def finished(name, method, ratio, epsilon):
        return 1e-9 if method == "fast_ihs" else paper_risk(name, method, ratio, epsilon)

    found = conclusions(read_summary(results(risk=finished)))
    assert [claim for claim in found if "comparison with FastIHS" in claim.claim] == []


def test_worlds_in_which_it_is_wrong(results):
    def grows(name, method, ratio, epsilon):
        if method == "fast_ihm_paper":
            return 1e-3 * ratio / epsilon
        return 1e-3 / (epsilon or 1.0)

    folder = results(risk=grows, eta=lambda *_: 16.0, slower=10.0)
    for text in ("loss shrinks", "matches IHM", "needs no noise", "not monotone", "outperforms IHM",
                 "literal FastIHM is faster", "our claim"):  # fmt: skip
        assert not any(c.agrees for c in find(folder, text)), text
    (match,) = find(folder, "matches IHM")
    assert match.reason.startswith(" Why: where the sketch needs noise")
    assert find(folder, "GaussMix needs less")[0].reason == ""  # it holds
    assert find(folder, "literal FastIHM is faster")[0].reason == " Why: we do not know."
    assert "r = 400: 4e+02 at ε = 1" in match.finding
    assert "both match at ε = none" in match.finding
    (noise,) = find(folder, "needs no noise")
    assert "IHM's largest η is 16. " in noise.finding
    assert "r = 800: 2 at ε = 1" in noise.finding  # 16² over 1024/8
    assert "not more than 1 at ε = 1, 3, 10" in find(folder, "our claim")[0].finding
    assert "0.24 at r = 4" in find(folder, "literal FastIHM is faster")[0].finding


def test_the_airline_appendix(summary):
    """The same curves: FastIHM at three times the risk of IHM is not close, at IHM's it is."""
    curves = summary.risk["figure2"]["black_friday"]
    seconds = summary.seconds["figure2"]["black_friday"]

    def conclude(methods, seconds):
        airline = {"risk": methods, "seconds": seconds}
        fields = {
            name: {**getattr(summary, name), "airline": {"flights_2001": values}}
            for name, values in airline.items()
        }
        (found,) = [c for c in conclusions(replace(summary, **fields)) if "fraction" in c.claim]
        return found

    far = conclude(curves, seconds)
    assert not far.agrees
    assert "more than 2 times at ε = 1, 3, 10" in far.finding
    near = {**curves, ("fast_ihm_paper", 200): curves["ihm_paper", None]}
    assert conclude(near, seconds).agrees
    assert "it is 1.7 times faster" in conclude(near, seconds).finding
    assert conclude(near, {("ihm_paper", None): 5.0}).agrees  # not timed yet
    assert not conclude(near, {**seconds, ("fast_ihm_paper", 200): 9.0}).agrees


def test_a_closed_gap_is_seen(results, paper_risk):
    folder = results(risk=lambda *which: paper_risk(*which, gap=1.0))
    (gap,) = find(folder, "keeps a gap")
    assert not gap.agrees


@pytest.mark.parametrize(
    ("name", "statistic", "value", "agrees"),
    [
        ("black_friday", "lambda_max", 40022.54 * 1.009, True),
        ("black_friday", "lambda_max", 40022.54 * 1.011, False),
        ("black_friday", "ols_mse", 0.0226, True),  # printed as 0.022
        ("black_friday", "ols_mse", 0.0231, False),
        ("black_friday", "d", 82.0, False),
        ("black_friday", "lambda_min", 9e-4, True),
        ("black_friday", "lambda_min", 2e-3, False),
    ],
)
def test_within(name, statistic, value, agrees):
    assert within(name, statistic, value) is agrees


def test_relative_difference():
    assert relative_difference("sphere", "d", 33.6) == pytest.approx(0.05)
    assert relative_difference("rossman", "lambda_min", 0.0) is None
    assert relative_difference("nycflights13", "d", 5.0) is None
