"""A fitted model in a file: JSON, exact to the last bit, and no pickle."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from fastmix._types import FloatArray
from fastmix.certificate.certificate import PrivacyCertificate
from fastmix.certificate.documents import (
    digest,
    jsonable,
    read_document,
    read_text,
    write_document,
)
from fastmix.data.values import as_reals, check_finite
from fastmix.errors import DataError
from fastmix.estimators import (
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateModel,
    PrivateQuantileRegressor,
)
from fastmix.estimators.summaries import summary_facts, summary_notes
from fastmix.methods import METHODS
from fastmix.show import Interval, RegressionSummary, summarise
from fastmix.tables import Columns, PublicBounds, encode
from fastmix.tables.frames import frame_columns

__all__ = ["FORMAT", "SavedModel", "bound_pair"]

FORMAT = "fastmix-model-3"

#: Entries that must be of a kind, to the letter.
_KINDS = {
    "fastmix": str,
    "fit_intercept": bool,
    "method": str,
    "n": int,
    "private": bool,
    "public_rows": bool,
}


@dataclass(frozen=True)
class SavedModel:
    """What is needed to predict: coefficients and the public encoding of a table.

    Coefficients are those of the encoded columns, in the user's units, with standard errors where
    the fit released what they need; of more than two classes those of one follow those of another,
    and there is an intercept for each; ``certificate`` is the digest of the certificate of the fit.
    ``max_rows_per_person`` and ``public_rows`` say whom the fit protects; scores are refused where
    it is not single rows of a public number.
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
    intercept_std: float | None
    bounds: PublicBounds
    max_rows_per_person: int | None
    public_rows: bool
    certificate: str | None = None
    family: str = "linear"
    quantile: float | None = None

    @classmethod
    def of(cls, model: PrivateModel, bounds: PublicBounds) -> SavedModel:
        """Return what is to be kept of a fitted model."""
        std = getattr(model, "coef_std_", None)
        method = model.privacy_.parameters["method_"]
        return cls(
            bounds=bounds,
            fit_intercept=bool(model.fit_intercept),
            family=METHODS[method].family,
            quantile=model.privacy_.parameters.get("quantile"),
            coef=tuple(np.ravel(model.coef_).tolist()),
            intercept=_intercept(np.ravel(model.intercept_)),
            coef_std=None if std is None else tuple(np.ravel(std).tolist()),
            intercept_std=getattr(model, "intercept_std_", None),
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
        plain: dict[str, Any] = jsonable({**data, "bounds": self.bounds.to_dict()})
        return plain

    @property
    def classes(self) -> tuple[Any, ...] | None:
        """The labels of a logistic model, sorted."""
        return self.bounds.ends if self.family == "logistic" else None

    @property
    def digest(self) -> str:
        """SHA-256 of the model without the digest of its certificate."""
        return digest(self.to_dict(), without=("certificate",))

    def to_json(self) -> str:
        """Return the model as a JSON document; every float is written in full."""
        return write_document(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> SavedModel:
        """Rebuild a model; the same floats as were written."""
        try:
            data = read_document(text)
            form, columns = data.pop("format"), data.pop("columns")
            std, intercept_std = data["coef_std"], data["intercept_std"]
            data |= {
                "epsilon": float(data["epsilon"]),
                "delta": float(data["delta"]),
                "coef": tuple(_finite(each) for row in _table(data["coef"]) for each in row),
                "intercept": _intercept([_finite(each) for each in _row(data["intercept"])]),
                "coef_std": None if std is None else tuple(map(float, std)),
                "intercept_std": None if intercept_std is None else float(intercept_std),
                "bounds": PublicBounds.from_dict(data["bounds"]),
            }
            model = cls(**data)
            if (
                form != FORMAT
                or "certificate" not in data
                or type(data["max_rows_per_person"]) not in (int, type(None))
                or any(type(data[name]) is not kind for name, kind in _KINDS.items())
                or list(model.bounds.columns(model.fit_intercept)) != columns
                or len(model.coef) != model._rows * len(columns)
                or len(model.coef_std or columns) != len(columns)
                or len(_row(model.intercept)) != model._rows
            ):
                raise ValueError("entries")
        except (KeyError, OverflowError, TypeError, ValueError):
            raise DataError(f"the model must be a JSON document of format {FORMAT!r}.") from None
        return model

    @classmethod
    def load(cls, path: Path) -> SavedModel:
        """Read a model from a file, or from the folder that ``fastmix fit`` wrote."""
        return cls.from_json(read_text(path / "model.json" if path.is_dir() else path))

    @property
    def title(self) -> str:
        """What stands above the coefficients."""
        kind = "logistic regression" if self.family == "logistic" else "regression"
        return f"Private {kind} of {self.bounds.target.name}"

    def summary(self, level: float = 0.95) -> RegressionSummary:
        """Return the coefficients in the form that statisticians know."""
        stds = [None] * len(self.coef) if self.coef_std is None else self.coef_std
        names, labels = self.bounds.columns(self.fit_intercept), self._called
        called = [f"{label}{name}" for label in labels for name in names]
        found = [Interval(*each) for each in zip(called, self.coef, stds, strict=True)]
        if self.fit_intercept:
            sides = zip(labels, _row(self.intercept), strict=True)
            std = self.intercept_std
            found += [Interval(f"{label}intercept", value, std) for label, value in sides]
        return summarise(
            found,
            title=self.title,
            facts=summary_facts(
                self.method,
                (self.epsilon, self.delta),
                self.n,
                public_rows=self.public_rows,
                max_rows=self.max_rows_per_person,
            ),
            level=level,
            notes=[] if self.coef_std is None else summary_notes(self.private),
            odds=self.family == "logistic",
        )

    @property
    def _called(self) -> list[str]:
        """What stands before the names of coefficients: the label, if there are several."""
        return [f"{label}: " for label in self.classes or ()] if self._rows > 1 else [""]

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
            "max_rows_per_group": self.max_rows_per_person,
            "public_rows": self.public_rows,
        }
        model: Any
        if self.family == "logistic":
            model = PrivateLogisticRegression(classes=self.classes, **common)
            model.coef_ = np.array(self.coef).reshape(self._rows, -1)
            model.intercept_ = np.array(_row(self.intercept))
            model.classes_ = self.classes_
        else:
            if self.quantile is not None:
                model = PrivateQuantileRegressor(quantile=self.quantile, **common)
            else:
                model = PrivateLinearRegression(**common)
            model.coef_, model.intercept_ = np.array(self.coef), self.intercept
        model.n_features_in_ = len(self.coef) // self._rows
        model.bounds_X_ = self.bounds.feature_bounds(self.fit_intercept)
        model.bounds_y_ = target.lower, target.upper
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

        An array must have the encoded columns in their order; its values are used unchanged, as
        by an estimator that was fitted to an array.

        A logistic model predicts the likeliest label; of two numbers, these are the bounds of the
        target. With ``proba`` it is the probability of the second label, and for more than two an
        array with a column for each.
        """
        if proba:
            likely = self.predict_proba(columns)
            return likely[:, 1] if self._rows == 1 else likely
        X = self._encoded(columns)
        if self.family == "logistic":
            return self.estimator().predict(X)
        return np.asarray(X @ self.coef_ + self.intercept)

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
            return _features(columns, len(self.coef) // self._rows)
        if not isinstance(columns, Columns):
            columns = frame_columns(columns, self.bounds, target=False)
        return encode(columns, self.bounds, intercept=self.fit_intercept, target=False)[0]


def _features(X: FloatArray, d: int) -> FloatArray:
    """Return an array of finite numbers with d columns."""
    X = np.asarray(as_reals("X", X))
    if X.ndim != 2 or X.shape[1] != d:
        raise ValueError(f"X must have {d} columns; got an array of shape {X.shape}.")
    check_finite(X)
    return X.astype(np.float64, copy=False)


def bound_pair(model: PrivateModel, bounds: PublicBounds) -> tuple[SavedModel, PrivacyCertificate]:
    """Return a fitted model and its certificate, each with the digest of the other."""
    saved = SavedModel.of(model, bounds)
    facts = {**model.privacy_.data, "missing": bounds.missing, "encoding": bounds.to_dict()}
    certificate = replace(model.privacy_, data=facts, model=saved.digest)
    return replace(saved, certificate=certificate.digest), certificate


def _table(values: Any) -> list[Any]:
    """Return coefficients as rows, one for each class where there are several."""
    return values if values and isinstance(values[0], list) else [values]


def _row(values: Any) -> list[float]:
    """Return intercepts as a list."""
    return [*values] if isinstance(values, (list, tuple)) else [values]


def _intercept(values: Any) -> float | tuple[float, ...]:
    """Return one intercept as a number, several as a tuple."""
    found = tuple(map(float, values))
    return found if len(found) > 1 else found[0]


def _finite(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError("finite")
    return float(value)
