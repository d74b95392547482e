"""Methods and plans: names, numbers, and the guarantee that is asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from fastmix import IHM, AdaSSP, FastIHM
from fastmix.accounting import Part, PrivacySpent
from fastmix.errors import CalibrationError
from fastmix.methods import (
    METHODS,
    AdaptiveStatistics,
    Method,
    Sizes,
    Target,
    plan_fit,
)


@pytest.mark.parametrize(
    "model",
    [
        IHM(variant="paper", n_steps=np.int8(5), gaussian_size=np.int8(100)),
        FastIHM(variant="shared", n_steps=np.int8(3), gaussian_size=np.int8(120)),
        FastIHM(gaussian_size=np.int8(120), sketch_size=np.uint8(128)),
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
    model = FastIHM(variant="shared", epsilon=1e-3, delta=0.1, inference=True)
    assert model.account(5000, 5).epsilon <= 1e-3
