"""A fitted model in a file: JSON, exact to the last bit, and no pickle."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from fastmix._types import FloatArray
from fastmix.certificate.certificate import PrivacyCertificate
from fastmix.certificate.documents import digest, jsonable, read_document, write_document
from fastmix.certificate.verify import INCOMPLETE
from fastmix.data.columns import Columns
from fastmix.data.encode import encode
from fastmix.data.frames import encoded_array, frame_columns
from fastmix.engine.population import Population
from fastmix.engine.scores import Score
from fastmix.errors import DataError
from fastmix.estimators import (
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateModel,
    PrivateQuantileRegressor,
)
from fastmix.estimators.contrasts import Effects, column_effects, contrasts, level_effects
from fastmix.estimators.summaries import residual_spread, summary_facts, summary_notes
from fastmix.files.released import (
    certified_model,
    intercepts,
    levels_of,
    read_beside,
    released,
    restore,
    row,
    scores_of,
    scores_to_dict,
)
from fastmix.paper import METHODS
from fastmix.schema import PublicBounds
from fastmix.show import RegressionSummary, summarise
from fastmix.show.html import effects as coefficients

__all__ = ["FORMAT", "SavedModel", "bound_pair"]

FORMAT = "fastmix-model-5"

#: Entries that must be of a kind, to the letter.
_KINDS = {
    "clip_predictions": bool,
    "fastmix": str,
    "fit_intercept": bool,
    "method": str,
    "n": int,
    "private": bool,
    "public_rows": bool,
}

#: Entries that the digest of a model is not about: itself, and the certificate, which has it.
OUTSIDE = ("certificate", "digest")


@dataclass(frozen=True)
class SavedModel:
    """What is needed to predict: coefficients and the public encoding of a table.

    Coefficients are those of the encoded columns, in the user's units, with standard errors where
    the fit released what they need; of more than two classes those of one follow those of another,
    and there is an intercept for each. ``residual_std`` and ``scores`` say how well the model
    predicts, if the fit released that; ``certificate`` is the digest of the fit's certificate.
    ``max_rows_per_person`` and ``public_rows`` say whom the fit protects; scores are refused where
    it is not single rows of a public number. ``level_counts`` are released counts of the levels of
    each category, with noise of ``count_noise``; with them, ``effect_std`` are the standard errors
    of `effects`. ``interval_share`` is the share of the budget that intervals took.
    """

    fastmix: str
    private: bool
    epsilon: float
    delta: float
    method: str
    n: int
    fit_intercept: bool
    coef: tuple[float, ...]
    intercept: float | tuple[float, ...]
    coef_std: tuple[float, ...] | None
    coef_noise_std: tuple[float, ...] | None
    intercept_std: float | None
    residual_std: float | None
    scores: dict[str, Score] | None
    bounds: PublicBounds
    max_rows_per_person: int | None
    public_rows: bool
    certificate: str | None = None
    family: str = "linear"
    quantile: float | None = None
    clip_predictions: bool = True
    level_counts: tuple[tuple[float, ...], ...] | None = None
    count_noise: float | None = None
    effect_std: tuple[float, ...] | None = None
    effect_noise_std: tuple[float, ...] | None = None
    interval_share: float | None = None

    @classmethod
    def of(cls, model: PrivateModel, bounds: PublicBounds) -> SavedModel:
        """Return what is to be kept of a fitted model."""
        stds = (getattr(model, name, None) for name in ("coef_std_", "coef_noise_std_"))
        std, noise = (None if each is None else tuple(np.ravel(each).tolist()) for each in stds)
        method = model.privacy_.parameters["method_"]
        return cls(
            **levels_of(model, bounds),
            bounds=bounds,
            fit_intercept=bool(model.fit_intercept),
            family=METHODS[method].family,
            quantile=model.privacy_.parameters.get("quantile"),
            coef=tuple(np.ravel(model.coef_).tolist()),
            intercept=intercepts(np.ravel(model.intercept_)),
            coef_std=std,
            coef_noise_std=noise,
            intercept_std=getattr(model, "intercept_std_", None),
            residual_std=residual_spread(model),
            scores=scores_of(model),
            method=getattr(model, "method_", method),
            epsilon=model.privacy_.epsilon,
            delta=model.privacy_.delta,
            private=model.privacy_.private,
            n=model.privacy_.data["n_samples"],
            max_rows_per_person=model.privacy_.data.get("max_rows_per_person"),
            public_rows=model.privacy_.parameters.get("public_rows", True),
            fastmix=version("fastmix"),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the model as plain JSON types."""
        data: dict[str, Any] = {"format": FORMAT}
        for field in fields(self):
            if field.name == "coef":
                data["columns"] = self.bounds.columns(self.fit_intercept)
            data[field.name] = getattr(self, field.name)
        if self.classes is not None and len(self.classes) > 2:
            data["coef"] = self.coef_.tolist()
        data |= {"bounds": self.bounds.to_dict(), "scores": scores_to_dict(self.scores)}
        plain: dict[str, Any] = jsonable(data)
        return {**plain, "digest": digest(plain, without=OUTSIDE)}

    @property
    def classes(self) -> tuple[Any, ...] | None:
        """The labels of a logistic model, sorted."""
        return self.bounds.ends if self.family == "logistic" else None

    @property
    def population(self) -> Population:
        """Who the fit protects."""
        return Population(None, self.max_rows_per_person, None, not self.public_rows)

    @property
    def digest(self) -> str:
        """SHA-256 of the model without the digest of its certificate."""
        return str(self.to_dict()["digest"])

    def to_json(self) -> str:
        """Return the model as a JSON document; every float is written in full."""
        return write_document(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> SavedModel:
        """Rebuild a model with the same floats as were written; refuse one that was changed."""
        try:
            data = read_document(text)
            same = data["digest"] == digest(data, without=OUTSIDE)
            form, columns, _ = data.pop("format"), data.pop("columns"), data.pop("digest")
            data |= {**released(data), "bounds": PublicBounds.from_dict(data["bounds"])}
            model = cls(**data)
            if (
                form != FORMAT
                or type(data["certificate"]) not in (str, type(None))
                or type(data["max_rows_per_person"]) not in (int, type(None))
                or any(type(data[name]) is not kind for name, kind in _KINDS.items())
                or data["family"] not in {method.family for method in METHODS.values()}
                or list(model.bounds.columns(model.fit_intercept)) != columns
                or len(model.coef) != model._rows * len(columns)
                or len(row(model.intercept)) != model._rows
            ):
                raise ValueError("entries")
            model.estimator()  # standard errors have the shape of the coefficients
            model.effects()  # and those of effects that of the effects
        except INCOMPLETE:
            raise DataError(f"the model must be a JSON document of format {FORMAT!r}.") from None
        if not same:
            raise DataError(
                "the model was changed after it was written: its digest is not that of its "
                "contents. Use the file as the fit wrote it, or fit again."
            )
        return model

    @classmethod
    def load(cls, path: Path) -> SavedModel:
        """Read a model from a file, or from the folder that ``fastmix fit`` wrote.

        A certificate in the same folder must be about this model.
        """
        text, certified = read_beside(path, "model.json", "certificate.json")
        model = cls.from_json(text)
        if certified is not None and certified_model(certified) != model.digest:
            raise DataError(
                "model.json does not match certificate.json in the same folder: one of them was "
                "changed, or comes from another fit. Use both as one fit wrote them."
            )
        return model

    @property
    def title(self) -> str:
        """What stands above the coefficients."""
        kind = "logistic regression" if self.family == "logistic" else "regression"
        return f"Private {kind} of {self.bounds.target.name}"

    def summary(self, level: float = 0.95) -> RegressionSummary:
        """Return the coefficients in the form that statisticians know."""
        return summarise(
            **self.effects().given,
            title=self.title,
            facts=summary_facts(
                self.method,
                (self.epsilon, self.delta),
                self.n,
                population=self.population,
                model=self.estimator(),
            ),
            level=level,
            notes=summary_notes(self.private, self.interval_share) if self.coef_std else [],
            odds=self.family == "logistic",
            epsilon=self.epsilon,
        )

    def effects(self) -> Effects:
        """Return the effects of the columns, the intercepts last.

        Levels are compared with the most frequent one of their category where the fit released
        counts of levels, and with the first one otherwise.
        """
        if self.level_counts is not None and self.count_noise is not None:
            made = contrasts(self.bounds, tuple(map(np.array, self.level_counts)), self.count_noise)
            errors = self.effect_std, self.effect_noise_std
            return level_effects(made, np.append(self.coef_, self.intercept_), *errors)
        found = coefficients(self.estimator(), self.bounds.columns(self.fit_intercept))
        return column_effects(found, self.bounds, self.fit_intercept)

    @property
    def _rows(self) -> int:
        """How many intercepts there are: one, or one for each of more than two classes."""
        return 1 if self.classes is None or len(self.classes) == 2 else len(self.classes)

    def estimator(self) -> PrivateModel:
        """Return the model as an estimator that predicts and is evaluated."""
        target = self.bounds.target
        common: dict[str, Any] = {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "fit_intercept": self.fit_intercept,
            "data_norm": self.bounds.data_norm,
            "public_rows": self.public_rows,
        }
        model: Any
        if self.family == "logistic":
            model = PrivateLogisticRegression(classes=self.classes, **common)
            model.coef_ = np.array(self.coef).reshape(self._rows, -1)
            model.intercept_ = np.array(row(self.intercept))
            model.classes_ = self.classes_
        else:
            if self.quantile is not None:
                model = PrivateQuantileRegressor(quantile=self.quantile, **common)
            else:
                model = PrivateLinearRegression(**common)
            model.coef_, model.intercept_ = np.array(self.coef), self.intercept
        model._population = self.population
        model.n_features_in_ = len(self.coef) // self._rows
        model.bounds_X_ = self.bounds.feature_bounds(self.fit_intercept)
        model.bounds_y_ = target.lower, target.upper
        restore(model, self)
        model.from_data_ = () if self.private else ("bounds were taken from the data",)
        return model  # type: ignore[no-any-return]

    @property
    def coef_(self) -> FloatArray:
        """Private coefficients of the encoded columns, in the user's units.

        Of more than two classes there is a row for each.
        """
        found = np.array(self.coef)
        return found if self._rows == 1 else found.reshape(self._rows, -1)

    @property
    def intercept_(self) -> float | FloatArray:
        """Private intercept, in the user's units, or one for each of more than two classes."""
        return self.intercept if isinstance(self.intercept, float) else np.array(self.intercept)

    @property
    def classes_(self) -> Any:
        """Labels of a logistic model, sorted, in the order of its probabilities."""
        if self.classes is None:
            raise AttributeError("only models of the family 'logistic' have classes_.")
        return np.array(self.classes)

    @property
    def feature_names_in_(self) -> tuple[str, ...]:
        """Names of the encoded columns, in the order of the coefficients."""
        return self.bounds.columns(self.fit_intercept)

    def predict(self, columns: Any, *, proba: bool = False) -> Any:
        """Return predictions for the rows of a table; values are clipped as in the fit.

        Predictions of a target with bounds stay inside them, unless ``clip_predictions`` is False.

        An array must have the encoded columns in their order; its values are used unchanged, as
        by an estimator that was fitted to an array.

        A logistic model predicts the likeliest label; of two numbers, these are the bounds of the
        target. With ``proba`` it is the probability of the second label, and for more than two an
        array with a column for each.
        """
        if proba:
            likely = self.predict_proba(columns)
            return likely[:, 1] if self._rows == 1 else likely
        model: Any = self.estimator()
        if self.family == "logistic":
            return model.predict(self._encoded(columns))
        return model.predict(self._encoded(columns), clip=self.clip_predictions)

    def predict_proba(self, columns: Any) -> FloatArray:
        """Return the probabilities of the labels of a logistic model, in the order of ``classes_``.

        The table is as in `predict`; there is a row for each of its rows, and a column per label.
        """
        if self.family != "logistic":
            raise DataError("probabilities need a model of the family 'logistic'.")
        model: Any = self.estimator()
        return np.asarray(model.predict_proba(self._encoded(columns)))

    def _encoded(self, columns: Any) -> FloatArray:
        """Return the features of a table, or those of an array unchanged."""
        if isinstance(columns, np.ndarray):
            return encoded_array(columns, len(self.coef) // self._rows)
        if not isinstance(columns, Columns):
            columns = frame_columns(columns, self.bounds, target=False)
        return encode(columns, self.bounds, intercept=self.fit_intercept, target=False)[0]


def bound_pair(model: PrivateModel, bounds: PublicBounds) -> tuple[SavedModel, PrivacyCertificate]:
    """Return a fitted model and its certificate, each with the digest of the other."""
    saved = SavedModel.of(model, bounds)
    facts = {**model.privacy_.data, "missing": bounds.missing, "encoding": bounds.to_dict()}
    facts.setdefault("categories", [len(columns) for columns in model._categories])
    certificate = replace(model.privacy_, data=facts, model=saved.digest)
    return replace(saved, certificate=certificate.digest), certificate
