"""One budget over scikit-learn's tools: clones, folds, grids, pickles and worker processes."""

from __future__ import annotations

import contextlib
import gc
import json
import pickle
import threading

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import fastmix
from fastmix import IHM, AdaSSP, BudgetAccountant, BudgetError
from fastmix.certificate import explain, verify_certificate
from fastmix.errors import InvalidValueError
from fastmix.paper import AdaptiveStatistics
from fastmix.releases import Noise

BOUNDS = {"bounds_X": (-1, 1), "bounds_y": (-1, 1)}


def problem(n=90, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (n, d)), rng.uniform(-1, 1, n)


def budget_for(count, estimator, n, d=3):
    """Return a budget that covers exactly ``count`` fits of n rows."""
    spent = estimator.account(n, d)
    return BudgetAccountant(count * spent.epsilon, count * spent.delta, rule="basic")


@pytest.mark.parametrize("cls", [IHM, AdaSSP, fastmix.PrivateLinearRegression])
def test_a_budget_for_three_fits_stops_at_the_fourth(cls):
    X, y = problem(90)
    estimator = cls(delta=1e-6, **BOUNDS)
    budget = budget_for(3, estimator, 72)
    estimator.set_params(accountant=budget)
    with pytest.raises(BudgetError, match="does not cover this fit"):
        cross_val_score(estimator, X, y, cv=KFold(5), error_score="raise")
    assert len(budget) == 3
    # Three folds fit exactly.
    budget = budget_for(3, estimator.set_params(accountant=None), 60)
    scores = cross_val_score(estimator.set_params(accountant=budget), X, y, cv=KFold(3))
    assert np.isfinite(scores).all()
    assert len(budget) == 3
    with pytest.raises(BudgetError):
        estimator.fit(X[:60], y[:60])
    assert len(budget) == 3


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_grid_search_charges_one_budget(n_jobs):
    X, y = problem()
    budget = BudgetAccountant(100.0, 1e-4)
    search = GridSearchCV(
        AdaSSP(delta=1e-6, accountant=budget, **BOUNDS),
        {"epsilon": [0.5, 1.0]},
        cv=KFold(3),
        n_jobs=n_jobs,
        error_score="raise",
    ).fit(X, y)
    # Two values, three folds, one refit.
    assert len(budget) == 7
    assert search.best_estimator_.accountant is budget
    spent = sorted(charge.spent.epsilon for charge in budget.charges)
    assert spent[0] == pytest.approx(0.5, rel=1e-6)
    assert spent[-1] == pytest.approx(1.0, rel=1e-6)
    assert {charge.label for charge in budget.charges} == {"AdaSSP"}


def test_a_grid_search_in_worker_processes_stops_when_it_is_spent():
    X, y = problem()
    estimator = AdaSSP(delta=1e-6, **BOUNDS)
    budget = budget_for(3, estimator, 60)
    search = GridSearchCV(
        estimator.set_params(accountant=budget),
        {"fit_intercept": [True, False]},
        cv=KFold(3),
        n_jobs=2,
        error_score="raise",
    )
    with pytest.raises(BudgetError):
        search.fit(X, y)
    assert len(budget) == 3


def test_clones_and_copies_share_the_budget():
    X, y = problem()
    budget = BudgetAccountant(100.0, 1e-4)
    model = AdaSSP(delta=1e-6, accountant=budget, **BOUNDS)
    for copy in (clone(model), pickle.loads(pickle.dumps(model)), clone(clone(model))):
        copy.fit(X, y)
    make_pipeline(FunctionTransformer(), clone(model)).fit(X, y)
    assert len(budget) == 4


def fit_in_worker(model, X, y):
    model.fit(X, y)
    return len(model.accountant)


@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "threading"])
def test_workers_share_the_budget(backend):
    X, y = problem()
    budget = BudgetAccountant(100.0, 1e-4)
    model = AdaSSP(delta=1e-6, accountant=budget, **BOUNDS)
    seen = Parallel(n_jobs=2, backend=backend)(
        delayed(fit_in_worker)(clone(model), X, y) for _ in range(4)
    )
    assert len(budget) == 4
    assert max(seen) == 4


class Sealed:
    """Data whose shape is public and whose values cannot be read."""

    def __init__(self, shape):
        self.shape = shape
        self.read = False

    def __len__(self):
        return self.shape[0]

    def __getattr__(self, name):
        if name in ("__dataframe__", "__arrow_c_stream__", "values", "to_numpy"):
            self.refuse()
        raise AttributeError(name)

    def __getitem__(self, key):
        self.refuse()

    def __array__(self, *args, **kwargs):
        self.refuse()

    def refuse(self):
        self.read = True
        raise AssertionError("data were read")


def test_a_refusal_comes_before_data_are_touched():
    X, y = Sealed((100, 3)), Sealed((100,))
    for model in (IHM(), AdaSSP(), fastmix.FastIHM(), fastmix.PrivateLinearRegression()):
        model.set_params(delta=1e-6, **BOUNDS)
        budget = BudgetAccountant(0.5, 1e-6)
        with pytest.raises(BudgetError):
            clone(model).set_params(accountant=budget).fit(X, y)
        assert len(budget) == 0
        assert not X.read
        # With enough budget the data are asked for, and the failure to read them costs nothing.
        budget = BudgetAccountant(50.0, 1e-6)
        with pytest.raises(InvalidValueError):
            clone(model).set_params(accountant=budget).fit(X, y)
        assert len(budget) == 0
        assert X.read
        X.read = False


def test_validation_failures_cost_nothing():
    X, y = problem()
    budget = BudgetAccountant(100.0, 1e-4)
    model = AdaSSP(delta=1e-6, accountant=budget, **BOUNDS)
    bad = X.copy()
    bad[0, 0] = np.nan
    for data in ((bad, y), (X, y[:-1]), (X[:, 0], y), (X, None), (X[:0], y[:0])):
        with pytest.raises(ValueError, match=r".+"):
            model.fit(*data)
    with pytest.raises(ValueError, match="bounds_X must"):
        clone(model).set_params(bounds_X=(1, -1)).fit(X, y)
    assert len(budget) == 0
    assert budget.total().epsilon == 0.0


def test_bounds_from_data_that_are_errors_cost_nothing():
    X, y = problem()
    budget = BudgetAccountant(float("inf"), 1e-4)
    with pytest.raises(fastmix.PrivacyLeakWarning):  # warnings are errors here
        AdaSSP(delta=1e-6, accountant=budget).fit(X, y)
    assert len(budget) == 0


def test_a_fit_that_fails_after_noise_was_drawn_has_spent(monkeypatch):
    X, y = problem()
    budget = BudgetAccountant(100.0, 1e-4)
    model = AdaSSP(delta=1e-6, accountant=budget, **BOUNDS)
    solve = AdaptiveStatistics.solve

    def fail(self, *arguments):
        solve(self, *arguments)
        raise MemoryError("after the release")

    monkeypatch.setattr(AdaptiveStatistics, "solve", fail)
    with pytest.raises(MemoryError):
        model.fit(X, y)
    assert len(budget) == 1
    assert not hasattr(model, "coef_")


def test_the_charge_is_on_disk_before_noise_is_drawn(monkeypatch):
    X, y = problem()
    budget = BudgetAccountant(100.0, 1e-4)
    seen = []
    release = Noise.release

    def spy(*args, **kwargs):
        seen.append(len(BudgetAccountant.load(budget.ledger)))
        return release(*args, **kwargs)

    monkeypatch.setattr(Noise, "release", spy)
    AdaSSP(delta=1e-6, accountant=budget, **BOUNDS).fit(X, y)
    assert seen == [1]


def test_a_fit_is_charged_what_its_certificate_says():
    X, y = problem()
    budget = BudgetAccountant(100.0, 1e-4)
    for model in (
        IHM(),
        AdaSSP(),
        fastmix.FastIHM(),
        fastmix.DPGradientDescent(n_steps=3),
        fastmix.LinearMixing(),
        fastmix.LinearMixing(fast=True),
    ):
        model.set_params(delta=1e-6, accountant=budget, **BOUNDS).fit(X, y)
        assert budget.charges[-1].spent == model.privacy_.spent
        assert budget.charges[-1].label == type(model).__name__
    assert len(budget) == 6
    parts = [charge.spent.epsilon for charge in budget.charges]
    assert 0.5 * max(parts) < budget.total().epsilon <= sum(parts) * (1 + 1e-9)


def test_the_active_budget_is_the_default():
    X, y = problem()
    model = AdaSSP(delta=1e-6, **BOUNDS)
    outer, inner, given = (BudgetAccountant(100.0, 1e-4) for _ in range(3))
    with outer:
        model.fit(X, y)
        with inner:
            model.fit(X, y)
        clone(model).set_params(accountant=given).fit(X, y)
    model.fit(X, y)
    assert (len(outer), len(inner), len(given)) == (1, 1, 1)
    tight = BudgetAccountant(0.5, 1e-6)
    with tight, pytest.raises(BudgetError):
        model.fit(X, y)
    assert model.accountant is None


def fit_a_model_of_its_own(X, y):
    AdaSSP(delta=1e-6, **BOUNDS).fit(X, y)


@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "threading"])
def test_every_fit_inside_a_block_is_charged(backend):
    """Wherever it runs, and whether its model was made here or there."""
    X, y = problem()
    model = AdaSSP(delta=1e-6, **BOUNDS)
    pool = Parallel(n_jobs=2, backend=backend)
    with pool:  # workers from before the block
        pool(delayed(fit_a_model_of_its_own)(X, y) for _ in range(2))
        with BudgetAccountant(100.0, 1e-4) as budget:
            pool(delayed(fit_a_model_of_its_own)(X, y) for _ in range(3))
            assert len(budget) == 3
            pool(delayed(AdaSSP.fit)(clone(model), X, y) for _ in range(2))
            assert len(budget) == 5
        pool(delayed(fit_a_model_of_its_own)(X, y) for _ in range(2))
    assert len(budget) == 5


def test_cross_validation_and_threads_inside_a_block_are_charged():
    X, y = problem()
    model = AdaSSP(delta=1e-6, **BOUNDS)
    with BudgetAccountant(100.0, 1e-4) as budget:
        cross_val_score(model, X, y, cv=KFold(3), n_jobs=2, error_score="raise")
        assert len(budget) == 3
        thread = threading.Thread(target=fit_a_model_of_its_own, args=(X, y))
        thread.start()
        thread.join()
        assert len(budget) == 4
    tight = BudgetAccountant(0.5, 1e-6)
    with tight, pytest.raises(BudgetError):
        cross_val_score(model, X, y, cv=KFold(3), n_jobs=2, error_score="raise")
    assert len(tight) == 0
    assert model.accountant is None


def test_a_model_that_leaves_a_block_is_charged_where_it_is_fitted():
    X, y = problem()
    with BudgetAccountant(100.0, 1e-4) as budget:
        sent = pickle.dumps(AdaSSP(delta=1e-6, **BOUNDS))
    pickle.loads(sent).fit(X, y)
    assert len(budget) == 1
    assert pickle.loads(pickle.dumps(AdaSSP())).accountant is None


def test_a_fitted_model_can_be_loaded_without_its_budget():
    X, y = problem()
    with BudgetAccountant(100.0, 1e-4):
        model = AdaSSP(delta=1e-6, **BOUNDS).fit(X, y)
        saved = pickle.dumps(model)
    gc.collect()
    loaded = pickle.loads(saved)
    assert (loaded.predict(X) == model.predict(X)).all()
    with pytest.raises(FileNotFoundError, match="ledger must exist"):
        loaded.fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"random_state": 0}, "the noise was seeded by the caller"),
        ({"bounds_X": None}, "bounds_X was taken from the data"),
        ({"bounds_y": None}, "bounds_y was taken from the data"),
        ({"epsilon": float("inf")}, "the method adds no noise"),
    ],
)
@pytest.mark.filterwarnings("ignore::fastmix.errors.PrivacyLeakWarning")
def test_a_fit_without_a_guarantee_does_not_look_clean(parameters, reason):
    X, y = problem()
    model = AdaSSP(delta=1e-6, **{**BOUNDS, **parameters})
    finite = BudgetAccountant(100.0, 1e-4)
    with finite, pytest.raises(BudgetError, match=f"guarantee is void: {reason}"):
        model.fit(X, y)
    assert len(finite) == 0
    assert not hasattr(model, "coef_")
    record = BudgetAccountant(float("inf"), 1e-4)
    with record:
        AdaSSP(delta=1e-6, **BOUNDS).fit(X, y)
        assert record.total().epsilon < 1.01
        model.fit(X, y)
    assert record.charges[1].leaks == model.privacy_.leaks == (reason,)
    assert record.total().epsilon == float("inf")


def test_fits_that_are_declared_together():
    X, y = problem()
    models = [AdaSSP(epsilon=0.5, delta=1e-7, **BOUNDS), IHM(epsilon=0.5, delta=1e-7, **BOUNDS)]
    budget = BudgetAccountant(0.75, 1e-6)
    accounts = [model.account(*X.shape) for model in models]
    with budget.declare(accounts):
        for model in reversed(models):
            model.fit(X, y)
        with pytest.raises(BudgetError):
            models[0].fit(X, y)
    assert [charge.label for charge in budget.charges] == ["2 fits declared together"]
    assert budget.total().epsilon <= 0.75
    assert [model.privacy_.spent for model in models] == accounts


def test_an_infinite_epsilon_is_refused_by_every_finite_budget():
    X, y = problem()
    budget = BudgetAccountant(1e9, 0.5)
    with pytest.raises(BudgetError):
        AdaSSP(epsilon=float("inf"), accountant=budget, **BOUNDS).fit(X, y)
    assert len(budget) == 0


def test_a_delta_above_the_budget_is_refused():
    X, y = problem()
    budget = BudgetAccountant(1.0, 1e-9)
    with pytest.raises(BudgetError):
        IHM(epsilon=0.9, delta=1e-3, accountant=budget, **BOUNDS).fit(X, y)
    assert len(budget) == 0


def test_a_saved_budget_goes_on(tmp_path):
    X, y = problem()
    path = tmp_path / "ledger.jsonl"
    budget = BudgetAccountant(100.0, 1e-4, ledger=path)
    AdaSSP(delta=1e-6, accountant=budget, **BOUNDS).fit(X, y)
    again = BudgetAccountant.load(path)
    AdaSSP(delta=1e-6, accountant=again, **BOUNDS).fit(X, y)
    assert len(budget) == len(again) == 2
    assert budget.total() == again.total()


# --- fits that are calibrated for their budget ---------------------------------------------------

FAMILIES = [
    (fastmix.PrivateLinearRegression, {}),
    (fastmix.PrivateLinearRegression, {"inference": True}),
    (fastmix.PrivateLinearRegression, {"score_share": 0.1}),
    (fastmix.ObjectivePerturbation, {}),
    (fastmix.PrivateLogisticRegression, {"classes": [0, 1]}),
    (fastmix.PrivateLogisticRegression, {"classes": [0, 1, 2]}),
    (fastmix.PrivateQuantileRegressor, {}),
    (fastmix.PrivateHuberRegressor, {}),
]


@pytest.mark.parametrize(("kind", "given"), FAMILIES)
def test_a_budget_of_1_takes_ten_fits_of_a_third(kind, given):
    """Ten fits of (0.3, 1e-8) of any size; without the calibration some sizes get three."""
    budget = BudgetAccountant(1.0, 1e-6)
    for n, d in ((100, 1), (2_000, 5), (10_000, 30), (100_000, 10), (10**6, 200)):
        asked = {"epsilon": 0.3, "delta": 1e-8, "bounds_X": (-1, 1), **given}
        spent = kind(accountant=budget, **asked).account(n, d)
        assert spent.epsilon <= 0.3 * (1.0 + 1e-9)
        assert spent.delta <= 1e-8 * (1.0 + 1e-9)
        budget.check(*[spent] * 10)
        with pytest.raises(BudgetError):
            budget.check(*[spent] * 14)


def test_a_calibrated_fit_says_so_everywhere():
    X, y = problem(30_000)
    asked = {"epsilon": 0.3, "delta": 1e-8, **BOUNDS}
    alone = fastmix.PrivateLinearRegression(**asked)
    with BudgetAccountant(1.0, 1e-6) as budget:
        planned = fastmix.plan(30_000, 3, **asked)
        assert "calibrated to compose" in planned.reason
        assert "calibrated to compose" in str(planned)
        model = fastmix.PrivateLinearRegression(**asked).fit(X, y)
        account = clone(model).account(30_000, 3)
    assert budget.charges[0].spent == model.privacy_.spent == account
    assert np.isfinite(model.conf_int()).any()
    certificate = model.privacy_
    assert certificate.parameters["budget_order"] == budget.order
    assert certificate.parameters["eps_c"] < 0.1
    assert certificate.epsilon == pytest.approx(0.3, rel=1e-6)
    assert "calibrated to compose" in " ".join(explain(certificate))
    assert verify_certificate(certificate.to_json()).verified
    # The same certificate without the order, or with another one, does not verify.
    for order in (None, 40.0):
        data = json.loads(certificate.to_json())
        data["parameters"]["budget_order"] = order
        if order is None:
            del data["parameters"]["budget_order"]
        wrong = verify_certificate(json.dumps(data)).complaints
        assert any("eps_c" in complaint for complaint in wrong)
    # Outside the block the fit is as it was.
    assert "calibrated" not in fastmix.plan(30_000, 3, **asked).reason
    parameters = alone.fit(X, y).privacy_.parameters
    assert "budget_order" not in parameters
    assert parameters["eps_c"] > 0.14


def test_the_calibration_depends_on_the_rule_and_on_no_charge():
    asked = {"epsilon": 0.3, "delta": 1e-8, "bounds_X": (-1, 1)}
    alone = fastmix.PrivateLinearRegression(**asked).account(5_000, 4)
    basic = BudgetAccountant(1.0, 1e-6, rule="basic")
    assert basic.order is None
    model = fastmix.PrivateLinearRegression(accountant=basic, **asked)
    assert model.account(5_000, 4) == alone
    # A budget that only records has nothing to save.
    assert model.set_params(accountant=BudgetAccountant(np.inf, 1e-6)).account(5_000, 4) == alone
    budget = BudgetAccountant(1.0, 1e-6)
    model.set_params(accountant=budget)
    first = model.account(5_000, 4)
    assert first != alone
    budget.spend(first)
    assert model.account(5_000, 4) == first
    # A ridge of one's own may be too small for another calibration.
    own = fastmix.ObjectivePerturbation(ridge=9.0, **asked)
    account = own.account(5_000, 4)
    assert own.set_params(accountant=budget).account(5_000, 4) == account
    # Gaussian releases need none.
    ihm = IHM(**asked)
    account = ihm.account(5_000, 4)
    assert ihm.set_params(accountant=budget).account(5_000, 4) == account


@pytest.mark.parametrize("inside", [True, False])
def test_declared_default_fits_run_as_they_were_declared(inside):
    """Accounts from inside the budget's block cost less together; those from outside work too."""
    X, y = problem(3_000)
    models = [fastmix.PrivateLinearRegression(epsilon=0.3, delta=1e-8, **BOUNDS) for _ in range(3)]
    budget = BudgetAccountant(1.0, 1e-6)
    with budget if inside else contextlib.nullcontext():
        accounts = [model.account(*X.shape) for model in models]
    with budget.declare(accounts) as paid:
        for model in models:
            model.fit(X, y)
        with pytest.raises(BudgetError, match="not on the declared list"):
            models[0].fit(X, y)
    assert len(paid) == 3
    assert all(("budget_order" in model.privacy_.parameters) == inside for model in models)
    assert budget.total().epsilon < (0.7 if inside else 1.0)


def test_a_comparison_is_calibrated_for_its_budget():
    X, y = problem(3_000)
    with BudgetAccountant(1.0, 1e-6) as budget:
        model = fastmix.PrivateLinearRegression(epsilon=0.3, delta=1e-8, **BOUNDS)
        found = fastmix.compare([[0], [1], [0, 1, 2]], X, y, model=model)
    assert budget.charges[0].spent == found.spent
    assert found.model.privacy_.parameters["budget_order"] == budget.order
    assert verify_certificate(found.model.privacy_.to_json()).verified


def test_persons_are_calibrated_by_the_curve_that_holds_for_them():
    """Six fits of (0.3, 1e-8) instead of three; the words claim no Gaussian release."""
    X, y = problem(3_000)
    groups = np.arange(3_000) // 3
    with BudgetAccountant(1.0, 1e-6) as budget:
        model = fastmix.PrivateLinearRegression(epsilon=0.3, delta=1e-8, **BOUNDS)
        model.fit(X, y, groups, max_rows_per_group=3)
    budget.check(*[model.privacy_.spent] * 5)
    with pytest.raises(BudgetError):
        budget.check(*[model.privacy_.spent] * 6)
    said = " ".join(explain(model.privacy_))
    assert "the least that it can cost for persons" in said
    assert "what a Gaussian release" not in said
    assert verify_certificate(model.privacy_.to_json()).verified


def test_a_hidden_number_of_rows_is_charged_by_the_same_calibration():
    X, y = problem(3_000)
    with BudgetAccountant(1.0, 1e-6) as budget:
        asked = {"epsilon": 0.3, "delta": 1e-8, "public_rows": False, **BOUNDS}
        model = fastmix.PrivateLinearRegression(**asked).fit(X, y)
    assert len(budget) == 2
    assert model.privacy_.parameters["budget_order"] == budget.order
    assert verify_certificate(model.privacy_.to_json()).verified
