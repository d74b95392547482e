"""Methods and plans: names, numbers, and the guarantee that is asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from fastmix import IHM, AdaSSP, FastIHM
from fastmix.accounting import GaussianEvent, Part, PrivacySpent, SketchEvent
from fastmix.data import ArrayRows, RowMap
from fastmix.engine import Draws, Method, Plan, Sizes, Solution, Target, plan_fit, solve_fit
from fastmix.engine.plan import joint
from fastmix.errors import CalibrationError
from fastmix.paper import METHODS, AdaptiveStatistics
from fastmix.releases import GRADIENT, fast_bounds, make_noise, mix
from fastmix.sketches import SRHT


@pytest.mark.parametrize(
    "model",
    [
        IHM(variant="paper", n_steps=np.int8(5), gaussian_size=np.int8(100)),
        FastIHM(variant="paper", n_steps=np.int8(3), gaussian_size=np.int8(120)),
        FastIHM(variant="paper", gaussian_size=np.int8(120), sketch_size=np.uint8(128)),
    ],
)
def test_small_integers_do_not_overflow(model):
    plain = {
        name: getattr(model, name)
        for name in ("n_steps", "gaussian_size", "sketch_size")
        if getattr(model, name, None) is not None
    }
    expected = type(model)(**model.get_params()).set_params(
        **{name: int(value) for name, value in plain.items()}
    )
    assert model.account(600, 3) == expected.account(600, 3)


def test_no_other_class_takes_the_name_of_a_method():
    with pytest.raises(ValueError, match="name must be that of no other method"):
        type("AdaptiveStatistics", (Method,), {"name": "adassp", "__module__": "elsewhere"})
    assert METHODS["adassp"] is AdaptiveStatistics


def test_a_plan_above_the_delta_of_the_target_is_refused():
    @dataclass(frozen=True, kw_only=True)
    class Careless(AdaptiveStatistics):
        name = "careless"

        def plan(self, sizes, target):
            plan = super().plan(sizes, target)
            (part,) = plan.spent.parts
            twice = Part(part.name, part.events, 2.0 * part.delta)
            return replace(plan, spent=PrivacySpent([twice]))

    try:
        with pytest.raises(CalibrationError, match=r"spends .* at delta=2e-06"):
            plan_fit(Careless(), Sizes(100, 3), Target(1.0, 1e-6))
    finally:
        del METHODS["careless"]


def test_no_budget_beside_residuals_is_an_error_of_calibration():
    with pytest.raises(CalibrationError, match="inference must leave a budget"):
        AdaSSP(epsilon=1e-5, delta=0.9, inference=True).account(1000, 5)
    model = FastIHM(variant="paper", epsilon=1e-3, delta=0.1, inference=True)
    assert model.account(5000, 5).epsilon <= 1e-3


def test_a_method_cannot_ask_for_least_squares_by_a_plan_without_steps():
    """Least squares without noise is for an infinite epsilon alone."""
    drawn = []

    @dataclass(frozen=True, kw_only=True)
    class Stepless(Method):
        name = "stepless"

        def plan(self, sizes, target):
            return Plan(spent=joint([GaussianEvent(9.0)], target.delta), steps=0)

        def solve(self, rows, plan, clip, draws):
            drawn.append(
                draws.noise.release(GRADIENT, rows, theta=np.zeros(2), clip=1.0, sigma=9.0)
            )
            return Solution(drawn[-1])

    try:
        rows = ArrayRows(np.eye(4, 2), RowMap(1.0), np.ones(4))
        method, noise = Stepless(), make_noise()
        plan = plan_fit(method, Sizes(4, 2), Target(1.0, 1e-6))
        found = solve_fit(method, rows, plan, None, 1.0, Draws(noise, noise.rng))
    finally:
        METHODS.pop("stepless")
    assert len(drawn) == 1
    assert found.theta is drawn[0]


def test_a_method_without_a_plan_cannot_be_made():
    with pytest.raises(TypeError, match="abstract"):
        Method()


@pytest.mark.parametrize(("sources", "match"), [(1, [True, False]), (2, [False, True])])
@pytest.mark.filterwarnings("ignore")
def test_two_fast_sketches_do_not_pass_for_one_with_more_rows(sources, match):
    """One sketch of 20 rows has an exact account, which two of 10 rows do not have."""
    noise, X = make_noise(0), np.random.default_rng(0).standard_normal((64, 2))
    given = {"tau": 3.0, "omega": 2.0, "law": "gaussian", "sharp": True}
    spectrum = fast_bounds(X, sketch=SRHT(32, 64), count=sources, rng=noise, **given)
    mix(spectrum, k=10, gamma=60.0, count=2, rng=noise)
    one, two = (
        [SketchEvent("fast_mix_sharp", 60.0, rows)] * count for rows, count in ((20, 1), (10, 2))
    )
    bounds = GaussianEvent(2.0, count=2 * sources)
    plans = [Plan(spent=joint([bounds, *each], 1e-6)) for each in (one, two)]
    assert [plan.matches(noise) for plan in plans] == match
    assert plans[0].spent.epsilon < plans[1].spent.epsilon
