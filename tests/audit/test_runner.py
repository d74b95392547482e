"""Audits end to end: a mechanism with a known answer, estimators, the registry."""

import json
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest

from fastmix import IHM, IHS, AdaSSP
from fastmix.accounting import BudgetAccountant, gaussian_epsilon, gaussian_sigma
from fastmix.audit import (
    Case,
    Claim,
    Data,
    Pair,
    audit,
    audit_all,
    estimator_case,
    plot_histograms,
    registry,
)
from fastmix.audit.estimators import ESTIMATORS, LONG
from fastmix.errors import LowAccuracyWarning
from tests.audit.release_cases import CASES, RELEASES


def randomised_response(truth, claimed, score=None):
    """A bit that is told truly with odds ``e^truth``; its epsilon is ``truth``."""

    def draw(data, trials, rng):
        bit = data.X[0, 0] > 0.0
        p = 1.0 / (1.0 + math.exp(-truth))
        return (bit == (rng.random((trials, 1)) < p)).astype(float)

    one, zero = np.ones((1, 1)), np.zeros((1, 1))
    pair = Pair("one bit", Data(one, one[:, 0]), Data(zero, zero[:, 0]))
    return Case("randomised response", Claim(claimed, 0.0), pair, draw, score, 4000, 400)


@pytest.mark.parametrize("score", [None, lambda values: values[:, 0]])
def test_a_known_epsilon_is_found(score):
    found = audit(randomised_response(1.0, 1.0, score), trials=20_000, rng=2)
    assert 0.9 < found.lower < 1.0
    assert found.passed
    assert found.trials == 20_000
    assert len(found.present) == len(found.absent) == 15_000


def test_a_false_claim_is_refuted():
    assert not audit(randomised_response(1.0, 0.8), trials=20_000, rng=2).passed
    assert not audit(randomised_response(1.0, 1.0), epsilon=0.8, trials=20_000, rng=2).passed
    # The same outputs are compatible with it when delta covers the difference.
    assert audit(randomised_response(1.0, 0.8), delta=0.3, trials=20_000, rng=2).passed


def test_false_alarms_are_rare():
    """1% at most: 50 audits of an exact claim, more than 4 alarms have probability 2e-4."""
    case = randomised_response(1.0, 1.0, lambda values: values[:, 0])
    alarms = sum(not audit(case, trials=200, rng=seed).passed for seed in range(50))
    assert alarms <= 4


def test_noise_of_production_can_be_audited():
    case = RELEASES["Laplace release of m"]()
    first, second = (audit(case, trials=2000) for _ in range(2))
    assert not np.array_equal(first.present, second.present)
    again = [audit(case, trials=2000, rng=4).present for _ in range(2)]
    assert np.array_equal(*again)


def test_an_estimator_is_audited_as_it_is():
    model = AdaSSP(epsilon=3.0, delta=1e-3, bounds_X=(0, 5), bounds_y=(0, 9))
    found = audit(model, trials=200, rng=0)
    assert found.epsilon == pytest.approx(3.0, rel=1e-6)
    assert found.delta == pytest.approx(1e-3)
    assert 0.0 <= found.lower <= found.epsilon
    assert model.bounds_X == (0, 5)
    assert not hasattr(model, "coef_")


def test_an_estimator_has_a_claim_at_every_delta():
    case = registry["DPGradientDescent"]()
    usual, wide = (audit(case, delta=delta, trials=400, rng=0) for delta in (None, 0.3))
    assert usual.epsilon == pytest.approx(3.0)
    # The noise is that of the first claim: the same Gaussian release, at another delta.
    mu = 1.0 / gaussian_sigma(3.0, usual.delta)
    assert wide.epsilon == pytest.approx(gaussian_epsilon(1.0, 0.3, mu), rel=1e-6)
    assert 0.0 < wide.lower < wide.epsilon
    assert audit(case, epsilon=1.0, delta=0.3, trials=40, rng=0).epsilon == 1.0


@pytest.mark.parametrize("name", sorted(set(ESTIMATORS) - LONG))
def test_few_fits_show_a_quarter_of_epsilon(name):
    (found,) = audit_all([name], quick=True, seed=0, workers=1)
    assert found.passed
    assert found.share >= 0.25
    assert found.trials <= 1_400


#: Cases that claim more than their neighbours can show: the paper's variants add up parts.
LOOSE = {"IHM, paper", "FastIHM, paper"}


def test_a_bound_above_what_the_releases_can_cost_refutes_the_account():
    """Randomised response with odds e, at a delta that costs it nothing worth speaking of."""
    loose = replace(randomised_response(1.0, 3.0), claim=Claim(3.0, 1e-6))
    for limit, passed in ((1.0, True), (0.8, False)):
        case = replace(loose, account=lambda delta, limit=limit: limit)
        found = audit(case, trials=20_000, rng=2)
        assert found.lower < found.epsilon == 3.0
        assert found.passed is passed
        assert found.reached == pytest.approx(found.lower / limit)
    # A claim may be less than the account.
    assert replace(loose, account=lambda delta: 2.0).attainable(Claim(0.5, 0.1)) == 0.5


def test_parts_that_are_added_up_cost_less_together():
    for name in LOOSE:
        case = registry[name]()
        assert case.attainable(case.claim) < 0.8 * case.claim.epsilon
    for name in ("IHM", "FastIHM", "AdaSSP", "LinearMixing"):
        case = registry[name]()
        assert case.attainable(case.claim) == pytest.approx(case.claim.epsilon)


def test_an_audit_spends_no_budget():
    """Its fits are of data that are made up."""
    with BudgetAccountant(1.0, 1e-6) as budget:
        audit("AdaSSP", trials=40, rng=0)
    assert budget.charges == ()


def test_what_is_not_private_is_refused():
    with pytest.raises(ValueError, match="model must be private"):
        estimator_case(IHS())
    with pytest.raises(ValueError, match="model must be private"):
        estimator_case(IHM(epsilon=math.inf))
    with pytest.raises(TypeError, match="target must be a Case"):
        audit("no such case")
    with pytest.raises(ValueError, match="trials must be"):
        audit("AdaSSP", trials=10)


def test_cases_have_their_names_and_states_their_claims():
    for name, build in CASES.items():
        case = build(delta=1e-4)
        assert case.name == name
        assert case.claim.delta == pytest.approx(1e-4)
        assert 0.0 < case.claim.epsilon < 10.0
        present, absent = case.pair.present, case.pair.absent
        if "not public" in name:  # one row less
            np.testing.assert_array_equal(present.X[1:], absent.X)
            np.testing.assert_array_equal(present.y[1:], absent.y)
            continue
        assert present.X.shape == absent.X.shape
        # Neighbours: rows in the unit ball, one of which is zeros in the second data set.
        assert np.linalg.norm(present.X, axis=1).max() == pytest.approx(1.0)
        changed = np.flatnonzero((present.X != absent.X).any(axis=1) | (present.y != absent.y))
        if present.groups is not None:  # all rows of a person
            assert (present.groups == absent.groups).all()
            assert len(np.unique(present.groups[changed])) == 1
            changed = changed[:1]
        assert len(changed) == 1
        assert not absent.X[changed].any()
        assert not absent.y[changed].any()


def test_every_mechanism_and_every_private_estimator_is_there():
    import fastmix

    names = " ".join(CASES)
    private = {"FastIHM", "IHM", "LinearMixing", "AdaSSP", "DPGradientDescent"}
    private |= {"ObjectivePerturbation", "PrivateLinearRegression", "PrivateLogisticRegression"}
    private |= {"PrivateHuberRegressor", "PrivateQuantileRegressor"}
    mixing = ("GaussMix", "FastMix", "MultipleFastMix", "Kerdock")
    for name in (*private, *mixing, "mean", "residuals", "intercept"):
        assert name in names
    estimators = {n for n in fastmix.__all__ if isinstance(getattr(fastmix, n), type)} & {
        n for n in fastmix.__all__ if hasattr(getattr(fastmix, n), "fit")
    }
    assert estimators == {*private, "PrivateBounds", "IHS", "PublicEncoder"}


def test_some_cases_in_this_process_and_results_travel(tmp_path):
    names = ["DPGradientDescent", "AdaSSP"]
    found = list(audit_all(names, quick=True, seed=3, workers=1))
    assert [r.name for r in found] == names
    assert all(r.passed for r in found)
    copy = pickle.loads(pickle.dumps(found[0]))
    assert copy.lower == found[0].lower
    row = json.loads(json.dumps(found[0].to_dict()))
    assert row["passed"] is True
    assert row["share"] == pytest.approx(row["lower"] / row["epsilon"])
    with_, without, edges = found[1].histogram(bins=20)
    assert with_.sum() == without.sum() == 3 * found[1].trials // 4
    assert len(edges) == 21
    plot_histograms(found, tmp_path / "scores.png")
    assert (tmp_path / "scores.png").read_bytes().startswith(b"\x89PNG")


def test_tiny_tables_of_an_audit_do_not_warn(recwarn):
    list(audit_all(["AdaSSP"], quick=True, seed=0, workers=1))
    assert not [each for each in recwarn if issubclass(each.category, LowAccuracyWarning)]


@pytest.mark.filterwarnings("error")
def test_fits_of_made_up_data_do_not_warn_of_seeds():
    audit(AdaSSP(epsilon=3.0, delta=0.05), trials=40)
