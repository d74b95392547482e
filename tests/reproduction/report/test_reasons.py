"""A reason is given where the noise levels of the runs show it, and only there."""

from dataclasses import replace

from reproduction.report.reasons import helpful_noise, noise_throughout, short_steps
from reproduction.report.summary import UNKNOWN, Mean, read_summary


def test_noise_that_helped(summary):
    """At epsilon 3 the larger sketch has less noise and more risk, at 10 neither changes."""
    few, many = ("fast_ihm_paper", 400), ("fast_ihm_paper", 800)
    low, high = Mean(1e-5, 1e-6, 3), Mean(1e-4, 1e-6, 3)
    risk = {few: {3.0: low, 10.0: low}, many: {3.0: high, 10.0: high}}

    def reason(noise):
        eta = {few: {3.0: 16.0, 10.0: 0.0}, many: {3.0: noise, 10.0: 0.0}}
        changed = {"risk": {"figure2": {"sphere": risk}}, "eta": {"figure2": {"sphere": eta}}}
        return helpful_noise(replace(summary, **changed), "figure2", "sphere", [400, 800])

    assert reason(0.0).startswith("the risk grows at ε = 3 from r = 400 to 800, where")
    assert reason(16.0) == UNKNOWN  # as much noise as before: something else costs accuracy


def test_short_steps(summary):
    eta = {("fast_ihm_paper", 1200): {0.3: 20.0}, ("ihm_paper", None): {0.3: 2.0}}
    data = {"flights": {"lambda_max": 100.0}}
    known = replace(summary, eta={"airline": {"flights": eta}}, datasets=data)
    reason = short_steps(known, "flights", 1200, [0.3])
    assert "At ε = 0.3 its η² is 4 times λ_max, where that of IHM is 0.04 times" in reason
    assert short_steps(known, "flights", 1200, []) == UNKNOWN
    assert short_steps(replace(known, datasets={}), "flights", 1200, [0.3]) == UNKNOWN


def test_noise_throughout(summary, results):
    """The sphere's larger sketches have no noise at epsilon 10, and in the other world they do."""
    assert noise_throughout(summary, [4, 400, 800]) == UNKNOWN
    noisy = read_summary(results(eta=lambda *_: 16.0))
    assert noise_throughout(noisy, [4, 400, 800]).startswith("with n = 1,024 rows λ_min is about")
