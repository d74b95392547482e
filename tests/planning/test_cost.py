"""Predicted seconds grow with the work."""

import pytest

from fastmix.planning import COSTED, CostModel, Problem


def test_more_work_takes_longer():
    model = CostModel()
    small, large = Problem(2**14, 16, 2**10), Problem(2**15, 32, 2**11)
    for method in COSTED:
        assert model.predict(method, large) > model.predict(method, small)
    assert model.predict("fast_ihm_paper", large) > model.predict("fast_ihm", large)


def test_errors():
    with pytest.raises(ValueError, match="method must be one of"):
        CostModel().predict("ols", Problem(10, 2))
    with pytest.raises(ValueError, match="n must be at least 1"):
        Problem(0, 2)
