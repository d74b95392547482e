"""A fitted model in a file: JSON, exact to the last bit, and no pickle."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from fastmix._types import FloatArray
from fastmix.certificate.certificate import PrivacyCertificate
from fastmix.certificate.documents import digest, jsonable, read_document, write_document
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

__all__ = ["SavedModel", "bound_pair", "read_text", "verify_pair"]

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
    the fit released what they need; ``certificate`` is the digest of the certificate of the fit.
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
    intercept: float
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
            intercept=float(np.ravel(model.intercept_)[0]),
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
        plain: dict[str, Any] = jsonable({**data, "bounds": self.bounds.to_dict()})
        return plain

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
                "coef": tuple(map(_finite, data["coef"])),
                "intercept": _finite(data["intercept"]),
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
                or {len(model.coef), len(model.coef_std or model.coef)} != {len(columns)}
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
        names = self.bounds.columns(self.fit_intercept)
        found = [Interval(*each) for each in zip(names, self.coef, stds, strict=True)]
        if self.fit_intercept:
            found.append(Interval("intercept", self.intercept, self.intercept_std))
        return summarise(
            found,
            title=self.title,
            facts=summary_facts(self.epsilon, self.delta, self.n, method=self.method),
            level=level,
            notes=[] if self.coef_std is None else summary_notes(self.private),
            odds=self.family == "logistic",
        )

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
            model = PrivateLogisticRegression(classes=(target.lower, target.upper), **common)
            model.coef_, model.intercept_ = np.array([self.coef]), np.array([self.intercept])
            model.classes_ = np.array([target.lower, target.upper])
        else:
            if self.quantile is not None:
                model = PrivateQuantileRegressor(quantile=self.quantile, **common)
            else:
                model = PrivateLinearRegression(**common)
            model.coef_, model.intercept_ = np.array(self.coef), self.intercept
        model.n_features_in_ = len(self.coef)
        model.bounds_X_ = self.bounds.feature_bounds(self.fit_intercept)
        model.bounds_y_ = target.lower, target.upper
        model.from_data_ = () if self.private else ("bounds were taken from the data",)
        return model  # type: ignore[no-any-return]

    @property
    def coef_(self) -> FloatArray:
        """Private coefficients of the encoded columns, in the user's units."""
        return np.array(self.coef)

    @property
    def intercept_(self) -> float:
        """Private intercept, in the user's units."""
        return self.intercept

    @property
    def feature_names_in_(self) -> tuple[str, ...]:
        """Names of the encoded columns, in the order of the coefficients."""
        return self.bounds.columns(self.fit_intercept)

    def predict(self, columns: Any, *, proba: bool = False) -> FloatArray:
        """Return predictions for the rows of a table; values are clipped as in the fit.

        An array must have the encoded columns in their order; its values are used unchanged, as
        by an estimator that was fitted to an array.

        A logistic model predicts the likelier of the two labels, which are the bounds of the
        target, or the probability of the upper one.
        """
        if proba and self.family != "logistic":
            raise DataError("probabilities need a model of the family 'logistic'.")
        if isinstance(columns, np.ndarray):
            X = _features(columns, len(self.coef))
        else:
            if not isinstance(columns, Columns):
                columns = frame_columns(columns, self.bounds, target=False)
            X, _ = encode(columns, self.bounds, intercept=self.fit_intercept, target=False)
        values = np.asarray(X @ self.coef_ + self.intercept)
        if proba:
            return np.asarray(expit(values))
        if self.family == "logistic":
            return np.where(values > 0.0, self.bounds.target.upper, self.bounds.target.lower)
        return values


def _features(X: FloatArray, d: int) -> FloatArray:
    """Return an array of finite numbers with d columns."""
    X = np.asarray(as_reals("X", X))
    if X.ndim != 2 or X.shape[1] != d:
        raise ValueError(f"X must have {d} columns; got an array of shape {X.shape}.")
    check_finite(X)
    return X.astype(np.float64, copy=False)


def read_text(file: Path) -> str:
    """Read a file of text."""
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise DataError(f"{file.name} must be text in UTF-8.") from None


def bound_pair(model: PrivateModel, bounds: PublicBounds) -> tuple[SavedModel, PrivacyCertificate]:
    """Return a fitted model and its certificate, each with the digest of the other."""
    saved = SavedModel.of(model, bounds)
    facts = {**model.privacy_.data, "missing": bounds.missing, "encoding": bounds.to_dict()}
    certificate = replace(model.privacy_, data=facts, model=saved.digest)
    return replace(saved, certificate=certificate.digest), certificate


def verify_pair(certificate: dict[str, Any], text: str) -> list[str]:
    """Say where a model does not belong to a certificate that verifies by itself."""
    try:
        model = SavedModel.from_json(text)
    except DataError:
        return [f"the model is not a complete document of format {FORMAT}"]
    wrong = []
    if certificate["model"] != digest(read_document(text), without=("certificate",)):
        wrong.append(
            "model.json does not match the certificate: it was changed, or comes from another fit"
        )
    if model.certificate != certificate["digest"]:
        wrong.append("the model names another certificate, or the certificate was changed")
    account, asked, facts = (certificate[key] for key in ("account", "parameters", "data"))
    stated = {
        "epsilon": (model.epsilon, float(account["epsilon"])),
        "delta": (model.delta, account["delta"]),
        "private": (model.private, certificate["private"]),
        "method": (model.method, asked.get("method_", "least_squares")),
        "quantile": (model.quantile, asked.get("quantile")),
        "family": (model.family, METHODS[asked["method_"]].family),
        "fit_intercept": (model.fit_intercept, asked["fit_intercept"]),
        "n": (model.n, facts["n_samples"]),
        "max_rows_per_person": (model.max_rows_per_person, facts.get("max_rows_per_person")),
        "public_rows": (model.public_rows, asked.get("public_rows", True)),
        "fastmix": (model.fastmix, certificate["versions"]["fastmix"]),
        "bounds": (write_document(model.bounds.to_dict()), write_document(facts["encoding"])),
        "coef_std": (model.coef_std is not None, asked["inference"]),
    }
    return wrong + [
        f"the {name} of the model is not that of the certificate"
        for name, (one, other) in stated.items()
        if one != other
    ]


def _finite(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError("finite")
    return float(value)
