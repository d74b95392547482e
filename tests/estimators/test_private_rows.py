"""A number of rows that is not public: what depends on it, what is said, what is refused."""

import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from fastmix import (
    IHM,
    AdaSSP,
    BudgetAccountant,
    ObjectivePerturbation,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    compare,
)
from fastmix.accounting import LaplaceEvent
from fastmix.accounting.charge import NOTHING_CHARGED
from fastmix.certificate import explain, verify_certificate
from fastmix.errors import BudgetError, DataError, LowAccuracyWarning
from fastmix.estimators.models import fixing
from fastmix.releases import SIZE, Noise
from tests.transcripts import recording, replaying

KNOWN = {"bounds_X": (-1.0, 1.0), "bounds_y": (-1.0, 1.0), "delta": 1e-8, "public_rows": False}


def problem(n=6000, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, np.clip(X @ [0.4, -0.2][:d] + 0.1 * rng.normal(size=n), -1, 1)


@pytest.mark.parametrize("kind", [PrivateLinearRegression, ObjectivePerturbation])
@pytest.mark.parametrize("given", [{}, {"groups": 3}, {"sample_weight": 2.0}])
def test_a_fit_without_a_public_number_of_rows(kind, given):
    X, y = problem()
    fit, model = {}, kind(epsilon=2.0, **KNOWN)
    truth = len(y)
    if "groups" in given:
        fit["groups"], truth = np.arange(len(y)) // 2, len(y) // 2
        fit["max_rows_per_group"] = 3
    if "sample_weight" in given:
        fit["sample_weight"] = np.linspace(0, 2, len(y))
        fit["max_weight"] = 2.0
    budget = BudgetAccountant(5.0, 1e-6)
    model.set_params(accountant=budget).fit(X, y, **fit)
    np.testing.assert_allclose(model.coef_, [0.4, -0.2], atol=0.1)
    certificate = model.privacy_
    assert certificate.private
    assert certificate.epsilon <= 2.0
    assert certificate.delta <= 1e-8
    (counted,) = [e for e in certificate.events if isinstance(e, LaplaceEvent)]
    assert counted.pure_epsilon == pytest.approx(0.04)
    released = certificate.data["n_samples"]
    assert abs(released - truth) < 40 * 25
    assert verify_certificate(certificate.to_json()).complaints == ()
    first, second = budget.charges
    assert first.label.endswith("number of rows")
    assert first.spent.epsilon == pytest.approx(0.04)
    assert first.spent.epsilon + second.spent.epsilon <= 2.0 + 1e-9
    words = " ".join(explain(certificate))
    assert "is not public. It was released with noise" in words
    assert "added or removed" in words
    assert f"{truth:,}" not in words or truth == released


def test_the_number_is_in_no_attribute_or_document():
    """Every number that a model holds is the same for n and n + 1 rows but for the noise."""
    seen = set()
    for _ in range(3):
        X, y = problem(4001)
        model = PrivateLinearRegression(epsilon=0.5, **KNOWN)
        model.fit(X, y, groups=np.arange(4001) // 3, max_rows_per_group=7)
        text = model.privacy_.to_json() + repr(vars(model))
        released = model.privacy_.data["n_samples"]  # which may be the number by chance
        for number in {4001, 1334} - {released, model.privacy_.data["n_persons"]}:
            assert f" {number}," not in text
            assert f"={number}," not in text
        seen.add(released)
    assert len(seen) > 1


class SameSize(Noise):
    """Noise that happens to release the same number of rows for neighbours."""

    def _bound(self, *arguments):
        return 3000.0


@pytest.mark.parametrize(
    ("kind", "extra"),
    [
        (ObjectivePerturbation, {}),
        (PrivateLinearRegression, {}),
        (PrivateLinearRegression, {"inference": True}),
        (PrivateLinearRegression, {"score_share": 0.1}),
        (fixing(PrivateLinearRegression, rounds=0), {}),
    ],
)
@pytest.mark.parametrize("n", [2999, 1023, 511])
def test_given_the_released_number_an_empty_record_changes_nothing(kind, extra, n, monkeypatch):
    """Adding a record is filling an empty one: what depends on n otherwise would show here."""
    from fastmix.estimators import _fitting

    X, y = problem(n)
    found = []
    for more in (0, 1, 2):
        monkeypatch.setattr(
            _fitting, "make_noise", lambda *a, **k: SameSize(np.random.default_rng(3))
        )
        model = kind(epsilon=2.0, fit_intercept=False, **{**KNOWN, **extra})
        rows = np.vstack((X, np.zeros((more, 2))))
        model.fit(rows, np.append(y, np.zeros(more)))
        found.append(model)
    for other in found[1:]:
        np.testing.assert_allclose(other.coef_, found[0].coef_, atol=1e-5)
        facts = [json.loads(each.privacy_.to_json()) for each in (other, found[0])]
        for each in facts:
            assert each["data"]["n_samples"] == 3000
            del each["digest"]
            each["data"].pop("chosen", None)
        assert facts[0] == facts[1]


def test_both_charges_are_checked_before_the_first():
    """One charge may use the whole budget, and two may not: nothing is charged then."""
    X, y = problem(300)
    budget = BudgetAccountant(1.0, 1e-6)
    model = PrivateLinearRegression(epsilon=1.0, accountant=budget, **{**KNOWN, "delta": 1e-6})
    with pytest.raises(BudgetError, match="Nothing was charged"):
        model.fit(X, y)
    assert len(budget) == 0
    model.set_params(epsilon=0.7).fit(X, y)
    assert len(budget) == 2


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9, 0.99])
@pytest.mark.parametrize("n", [1, 40, 6000])
def test_the_number_is_not_charged_without_a_fit(share, n):
    """Whatever the released number is, a budget that lets it be released covers the fit too."""
    X, y = problem(n)
    budget = BudgetAccountant(1.0, 1e-6)
    budget.spend(PrivateLinearRegression(epsilon=0.1, **KNOWN).account(100, 2), public_rows=False)
    given = {**KNOWN, "delta": 1e-7}
    try:
        PrivateLinearRegression(epsilon=share, accountant=budget, **given).fit(X, y)
    except BudgetError:
        assert len(budget) == 1
    else:
        assert len(budget) == 3


def test_what_is_wrong_with_a_residual_clip_is_said_before_the_charge():
    X, y = problem(300)
    budget = BudgetAccountant(100.0, 1e-3)
    for clip in (1e-200, 1e200):
        with pytest.raises(ValueError, match="residual_clip must be"):
            ObjectivePerturbation(residual_clip=clip, accountant=budget, **KNOWN).fit(X, y)
    assert len(budget) == 0


@pytest.mark.filterwarnings("error::fastmix.errors.LowAccuracyWarning")
def test_advice_that_is_an_error_comes_when_the_model_is_there():
    """Advice follows from the released number, so it comes after the charge, and the fit."""
    X, y = problem(30)
    table = {"a": X[:, 0], "b": X[:, 1], "y": y}
    named = {"bounds": {"features": {"a": [-1, 1], "b": [-1, 1]}, "target": {"y": [-1, 1]}}}
    named |= {"delta": 1e-8, "public_rows": False}
    for model, given in [
        (PrivateLinearRegression(epsilon=0.01, random_state=0, **KNOWN), (X, y)),
        (PrivateLinearRegression(epsilon=0.01, random_state=0, **named), (table,)),
    ]:
        with pytest.raises(LowAccuracyWarning):
            model.fit(*given)
        assert model.privacy_.epsilon <= 0.01
        assert model.coef_.shape == (2,)


@pytest.mark.parametrize("kind", [PrivateLinearRegression, ObjectivePerturbation])
@pytest.mark.parametrize("given", [{}, {"max_rows_per_group": 2}, {"max_weight": 2.0}])
@pytest.mark.parametrize("n", [0, 1])
def test_an_empty_table_is_fitted_as_one_of_one_row_is(kind, given, n):
    X, y = problem(n)
    budget = BudgetAccountant(100.0, 1e-3)
    fit = {"groups": np.arange(n)} if "max_rows_per_group" in given else {}
    fit |= {"sample_weight": np.ones(n)} if "max_weight" in given else {}
    model = kind(accountant=budget, **KNOWN).fit(X, y, **fit, **given)
    assert np.isfinite(model.coef_).all()
    assert len(budget) == 2


def test_errors_about_shapes_do_not_say_how_many_rows_there_are():
    X, y = problem(777)
    table = {"a": X[:, 0], "b": X[:, 1]}
    named = {"bounds": {"features": {"a": [-1, 1], "b": [-1, 1]}, "target": {"y": [-1, 1]}}}
    named |= {"delta": 1e-8, "public_rows": False}
    for given, data in [
        (KNOWN, {"X": X, "y": y[1:]}),
        (KNOWN, {"X": X[:, 0], "y": y}),
        (KNOWN, {"X": X, "y": X}),
        (KNOWN, {"X": X, "y": y, "groups": np.arange(776), "max_rows_per_group": 2}),
        (KNOWN, {"X": X, "y": y, "sample_weight": np.ones(776)}),
        (named, {"X": table, "y": y[1:]}),
        (named, {"X": table, "y": y[:, None]}),
        (named, {"X": table | {"b": X}, "y": y}),
        (named, {"X": table, "y": y, "groups": np.arange(776), "max_rows_per_group": 2}),
        (KNOWN, {"X": X[:, :0], "y": y}),
    ]:
        with pytest.raises((ValueError, DataError), match="must have") as caught:
            PrivateLinearRegression(**given).fit(**data)
        assert "77" not in str(caught.value)


@pytest.mark.parametrize("kind", ["U", "S", "M8[s]", "complex", "ragged"])
def test_errors_about_values_do_not_say_how_many_rows_there_are(kind):
    X, y = problem(777)
    rows = [[0.0], *X[1:].tolist()] if kind == "ragged" else X.astype("i8").astype(kind)
    for data in (rows, y), (X, rows if kind == "ragged" else rows[:, 0]):
        with pytest.raises(ValueError, match=r"must (hold|be free)") as caught:
            PrivateLinearRegression(**KNOWN).fit(*data)
        assert "77" not in str(caught.value)
        assert caught.value.__context__ is None


@pytest.mark.parametrize("given", [{}, {"max_rows_per_group": 2}, {"max_weight": 2.0}])
@pytest.mark.parametrize("lengths", [[], [0], [0, 0], [1], [0, 1]])
def test_chunks_without_rows_are_fitted_as_those_of_one_row_are(given, lengths, tmp_path):
    X, y = problem(1)
    whole = pa.table({"a": X[:, 0], "b": X[:, 1], "y": y, "id": [7], "w": [1.0]})
    path = tmp_path / "table.parquet"
    with pa.parquet.ParquetWriter(path, whole.schema) as writer:
        for n in lengths:
            writer.write_table(whole.slice(0, n))
    budget = BudgetAccountant(100.0, 1e-3)
    beside = {"groups": "id"} if "max_rows_per_group" in given else {}
    beside |= {"sample_weight": "w"} if "max_weight" in given else {}
    beside |= given
    for kind in (PrivateLinearRegression, ObjectivePerturbation):
        model = kind(accountant=budget, **KNOWN)
        model.fit_parquet(path, features=["a", "b"], **beside)
        assert np.isfinite(model.coef_).all()
        if not sum(lengths):
            with pytest.raises(DataError, match="at least one row"):
                model.set_params(public_rows=True).fit_parquet(path, features=["a", "b"], **beside)
    assert len(budget) == 4


def test_refusals_charge_nothing():
    X, y = problem(300)
    budget = BudgetAccountant(100.0, 1e-3)
    with budget:
        for model, message in [
            (PrivateLinearRegression(**{**KNOWN, "delta": None}), "delta must be given"),
            (PrivateLinearRegression(**{**KNOWN, "public_rows": "no"}), "public_rows must be"),
            (PrivateLinearRegression(epsilon=math.inf, **KNOWN), "epsilon must be finite"),
            (ObjectivePerturbation(solver="sketch", **KNOWN), "solver must be 'auto' or 'gram'"),
            (ObjectivePerturbation(ridge=1e-9, **KNOWN), "ridge must be at least"),
        ]:
            with pytest.raises((TypeError, ValueError), match=message):
                model.fit(X, y)
        for kind in (IHM, AdaSSP):
            with pytest.raises(TypeError, match="unexpected keyword argument 'public_rows'"):
                kind(**KNOWN)
        with pytest.raises(ValueError, match="delta must be given"):
            compare([[0], [1]], X, y, model=PrivateLinearRegression(**{**KNOWN, "delta": None}))
        with pytest.raises(ValueError, match="finite"):
            PrivateLinearRegression(**KNOWN).fit(X, np.where(y > 0, np.nan, y))
    assert len(budget) == 0
    with BudgetAccountant(1.0, 1e-6) as small:
        with pytest.raises(BudgetError):
            PrivateLinearRegression(epsilon=2.0, **KNOWN).fit(X, y)
        assert len(small) == 0
    fitted = PrivateLinearRegression(**KNOWN).fit(X, y)
    with pytest.raises(ValueError, match="delta must be given where the number of rows is not"):
        fitted.evaluate(X, y, epsilon=1.0)


def test_a_refusal_after_the_number_says_so(monkeypatch):
    """The plan of the released number may cost more than the plan that was asked about."""
    X, y = problem(300)
    budget = BudgetAccountant(2.0, 1e-6)
    spend = BudgetAccountant.spend

    def full(self, spent, **given):
        if len(self):
            raise BudgetError(f"It is full. {NOTHING_CHARGED}")
        spend(self, spent, **given)

    monkeypatch.setattr(BudgetAccountant, "spend", full)
    with pytest.raises(BudgetError, match=r"full\. The number of rows was charged"):
        PrivateLinearRegression(accountant=budget, **KNOWN).fit(X, y)
    assert len(budget) == 1


def test_bounds_found_privately_show_the_number(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = problem(3000)
    frame = pd.DataFrame({"a": X[:, 0], "y": y})
    text = (
        "[target]\ny = [-1, 1]\n[features]\na = [-1, 1]\n"
        "[found]\nepsilon = 0.1\ndelta = 1e-7\ncoverage = 0.999\n"
        f'certificate = "sha256:{"0" * 64}"\n'
    )
    (tmp_path / "b.toml").write_text(text)
    model = PrivateLinearRegression(bounds=tmp_path / "b.toml", delta=1e-8, public_rows=False)
    with pytest.raises(ValueError, match="public_rows must be True with bounds"):
        model.fit(frame)


@pytest.mark.parametrize("extra", [{}, {"rounds": 2}, {"max_rows_per_group": 2}])
def test_fits_of_neighbours_differ_by_their_transcripts_alone(extra):
    """What was released for n rows gives the same model when the table has one row less."""
    X, y = problem(400, 1)
    given = {**KNOWN, "fit_intercept": False, "random_state": 0}
    kind = fixing(PrivateLinearRegression, **({"rounds": 2} if "rounds" in extra else {}))
    ids = {"groups": np.arange(400) // 2, **extra} if "max_rows_per_group" in extra else {}
    with recording() as transcript:
        first = kind(epsilon=2.0, **given).fit(X, y, **ids)
    assert transcript[0].release is SIZE
    with replaying(transcript):
        fewer = {**ids, "groups": ids["groups"][2:]} if ids else {}
        second = kind(epsilon=2.0, **given).fit(X[2:], y[2:], **fewer)
    assert first.coef_ == second.coef_
    assert first.privacy_.data == second.privacy_.data


@pytest.mark.filterwarnings("ignore::fastmix.errors.LowAccuracyWarning")
def test_a_number_is_charged_only_if_its_fit_is_covered_whatever_it_is():
    """Some numbers between powers of ten cost more, and the count was charged in vain.

    Here they are 304 to 361, 40% of the released numbers: they need a budget of 1.069195, powers
    of ten from 1000 on one of 1.069185, and those up to 100 1.038. The test cannot fail by chance.
    """
    X, fitted = np.random.default_rng(0).uniform(-1, 1, (315, 5)), 0
    for epsilon in (*np.linspace(1.03, 1.08, 11), *np.linspace(1.069183, 1.069197, 15)):
        budget = BudgetAccountant(float(epsilon), 1e-6)
        model = PrivateLogisticRegression(
            classes=[0, 1], bounds_X=(-1, 1), public_rows=False, delta=1e-6, accountant=budget
        )
        try:
            model.fit(X, X[:, 0] > 0)
        except BudgetError:
            assert len(budget) == 0
            continue
        assert len(budget) == 2
        assert verify_certificate(model.privacy_.to_json()).complaints == ()
        fitted += 1
    assert 3 < fitted < 20
