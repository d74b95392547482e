"""The attributes of a fitted estimator: released values and the certificate."""

import math
import os
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fastmix._types import FloatArray
from fastmix._validation import check_bool
from fastmix.accounting import BudgetAccountant
from fastmix.certificate import PrivacyCertificate, jsonable
from fastmix.certificate.certificate import ledger_reference
from fastmix.certificate.signing import read_signer
from fastmix.data.scaling import PublicScaling
from fastmix.engine import METHODS, Method, Plan, Solution
from fastmix.engine.population import Population
from fastmix.estimators._found import found_releases
from fastmix.estimators.evaluation import PrivateScores, scaled_coefficients
from fastmix.estimators.intervals import store_intervals
from fastmix.estimators.leaving import plain_estimator
from fastmix.estimators.parameters import reasons_for_leaks
from fastmix.estimators.saving import save_model
from fastmix.random import RandomState, is_seeded


class Results:
    """Stores coefficients, intervals, scores and certificate of a fit, and saves them."""

    epsilon: float
    fit_intercept: bool
    _population: Population
    _dummies: tuple[tuple[int, ...], ...]
    random_state: RandomState
    n_features_in_: int
    intercept_: Any
    _stated: Callable[[], dict[str, Any]]
    _budget: Callable[[], BudgetAccountant | None]

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        replace: bool = False,
        sign: str | os.PathLike[str] | None = None,
    ) -> None:
        """Write the fitted model and its certificate into a folder; `fastmix.load` reads it.

        Parameters
        ----------
        path : path
            The folder; it is created if it does not exist.
        replace : bool, default=False
            Replace a model in the folder.
        sign : path, default=None
            Private Ed25519 key, a PEM file that ``fastmix key`` wrote; None does not sign.

        Notes
        -----
        The files are those of ``fastmix fit`` without the report: JSON, exact to the last bit, no
        pickle. They contain public and released values only, and no random state.
        """
        check_is_fitted(self)
        check_bool("replace", replace)
        signer = None if sign is None else read_signer(Path(sign))
        save_model(self, Path(path), replace=replace, signer=signer)

    def to_sklearn(self) -> Any:
        """Return a plain scikit-learn estimator with the released coefficients.

        Returns
        -------
        LinearRegression, LogisticRegression or OneVsRestClassifier
            A fitted estimator, for tools that read scikit-learn's models, such as converters to
            ONNX and PMML. It costs no privacy.

        Notes
        -----
        Its columns are those of the coefficients: a category has one column per level, as
        `PublicEncoder` makes them. It predicts what this model predicts with ``clip=False``: it
        does not move predictions into the bounds of the target, and does not sort several
        quantiles. It has neither intervals nor a certificate.
        """
        check_is_fitted(self)
        return plain_estimator(self)

    @property
    def method_(self) -> str:
        """Name of the method of the fit; "least_squares" for a linear fit without privacy."""
        name: str = self.privacy_.parameters["method_"]
        plain = math.isinf(self.epsilon) and METHODS[name].family == "linear"
        return "least_squares" if plain else name

    @property
    def level_counts_(self) -> dict[str, dict[str, float]]:
        """Released numbers of rows of each level of each category."""
        from fastmix.estimators import contrasts  # which only tables need

        return contrasts.level_counts(self)

    def _store(
        self,
        method: Method,
        plan: Plan,
        solution: Solution,
        scaling: PublicScaling,
        n: int,
        clip: float,
        source: str,
        table_rows: int | None,
    ) -> None:
        """Store what a fit of n records, or persons, found; the table may have more rows."""
        d: int = self.n_features_in_
        self._store_coefficients(solution.theta, scaling)
        self.n_steps_ = plan.steps
        self.gamma_, self.eta_ = solution.gamma, solution.eta
        self.gradient_noise_ = solution.gradient_noise
        self.bounds_X_, self.bounds_y_ = scaling.bounds_X, scaling.bounds_y
        self.__dict__.pop("_level_counts", None)
        if solution.levels is not None:
            self._level_counts, self._count_errors = solution.levels, solution.level_errors
        store_intervals(self, solution, plan, self._units(scaling), clip=clip, n=n)
        self.__dict__.pop("scores_", None)
        if solution.scores is not None:
            scores = method.scoring().in_units(solution.scores, scaling.target_map.scale)
            self.scores_ = PrivateScores(scores, None, n, self._population)
        facts = {"n_samples": n, "n_features": d, **scaling.describe(), **self._facts()}
        if self._dummies:
            facts["dummies"] = [list(columns) for columns in self._dummies]
        if plan.rows_per_person is not None:
            facts["n_samples"] = table_rows
            facts |= {"n_persons": n, "max_rows_per_person": plan.rows_per_person}
        if found := found_releases(self):
            facts["bounds_found"] = {
                "epsilon": math.fsum(each.epsilon for each in found),
                "delta": math.fsum(each.delta for each in found),
            }
        if plan.weight_sigma is not None:
            facts["max_weight"] = self._population.max_weight
        if solution.chosen is not None:
            self.chosen_ = facts["chosen"] = solution.chosen
        if (method.clips or plan.residual_sigma is not None) and not math.isinf(self.epsilon):
            facts["residuals_clipped_at"] = clip * scaling.target_map.scale
        self.privacy_ = PrivacyCertificate(
            spent=plan.spent,
            mechanism=type(self).__name__,
            parameters={
                **self._stated(),
                **{f.name: getattr(method, f.name) for f in fields(method)},
                **jsonable(plan.settings),
                "method_": method.name,
            },
            data=facts,
            noise="seeded" if is_seeded(self.random_state) else source,
            leaks=reasons_for_leaks(self, plan),
            ledger=ledger_reference(self._budget()),
        )

    def _units(self, scaling: PublicScaling) -> PublicScaling:
        """Return the scaling of coefficients; with a link they are not in units of the target."""
        return scaling

    def _store_coefficients(self, theta: FloatArray, scaling: PublicScaling) -> None:
        """Store coefficients in the user's units; several outputs have a row each."""
        d = self.n_features_in_
        outputs = np.split(theta, len(theta) // (d + bool(self.fit_intercept)))
        found = [self._units(scaling).coefficients(each, d) for each in outputs]
        self.coef_, self.intercept_ = found[0]
        if len(found) > 1:
            self.coef_ = np.stack([coef for coef, _ in found])
            self.intercept_ = np.array([intercept for _, intercept in found])

    def _facts(self) -> dict[str, Any]:
        """Return the entries of the certificate about the data, other than bounds."""
        return {}

    def _as_fitted(self) -> Any:
        """Return the model with everything that the fit found as parameters."""
        return self

    def _scaled(self, scaling: PublicScaling) -> FloatArray:
        """Return the coefficients in scaled units."""
        return scaled_coefficients(scaling, self.coef_, self.intercept_)
