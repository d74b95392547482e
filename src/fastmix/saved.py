"""A fitted model in a file: JSON, exact to the last bit, and no pickle."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fastmix.errors import DataError
from fastmix.estimators import PrivateLinearRegression
from fastmix.estimators.certificate import jsonable
from fastmix.estimators.explanation import explain
from fastmix.render.fit import Effect, FitFacts
from fastmix.tables import Columns, Number, PublicBounds, encode
from fastmix.tables.bounds import Feature

__all__ = ["SavedModel", "fit_facts"]

FORMAT = "fastmix-model-1"


@dataclass(frozen=True)
class SavedModel:
    """What is needed to predict: coefficients and the public encoding of a table.

    Parameters
    ----------
    bounds : PublicBounds
        Public bounds and categories of the table's columns.
    fit_intercept : bool
        Whether the model has an intercept.
    coef : tuple of float
        Private coefficients of the encoded columns, in the user's units.
    intercept : float
        Private intercept.
    coef_std : tuple of float, optional
        Standard errors, where the fit released what they need.
    intercept_std : float, optional
        That of the intercept.
    method : str
        The method that was used.
    epsilon, delta : float
        What the fit spent.
    private : bool
        Whether the guarantee holds.
    n : int
        Rows of the fit.
    """

    bounds: PublicBounds
    fit_intercept: bool
    coef: tuple[float, ...]
    intercept: float
    coef_std: tuple[float, ...] | None
    intercept_std: float | None
    method: str
    epsilon: float
    delta: float
    private: bool
    n: int

    @classmethod
    def of(cls, model: PrivateLinearRegression, bounds: PublicBounds) -> SavedModel:
        """Return what is to be kept of a fitted model."""
        std = getattr(model, "coef_std_", None)
        return cls(
            bounds=bounds,
            fit_intercept=bool(model.fit_intercept),
            coef=tuple(model.coef_.tolist()),
            intercept=float(model.intercept_),
            coef_std=None if std is None else tuple(std.tolist()),
            intercept_std=getattr(model, "intercept_std_", None),
            method=model.method_,
            epsilon=model.privacy_.epsilon,
            delta=model.privacy_.delta,
            private=model.privacy_.private,
            n=model.privacy_.data["n_samples"],
        )

    def to_json(self) -> str:
        """Return the model as a JSON document; every float is written in full."""
        data: dict[str, Any] = {
            "format": FORMAT,
            "fastmix": version("fastmix"),
            "private": self.private,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "method": self.method,
            "n": self.n,
            "fit_intercept": self.fit_intercept,
            "columns": list(self.bounds.columns(self.fit_intercept)),
            "coef": list(self.coef),
            "intercept": self.intercept,
            "coef_std": None if self.coef_std is None else list(self.coef_std),
            "intercept_std": self.intercept_std,
            "bounds": self.bounds.to_dict(),
        }
        return json.dumps(jsonable(data), indent=2, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> SavedModel:
        """Rebuild a model; the same floats as were written."""
        try:
            data = json.loads(text)
            if data["format"] != FORMAT:
                raise ValueError(data["format"])
            bounds = PublicBounds.from_dict(data["bounds"])
            model = cls(
                bounds=bounds,
                fit_intercept=data["fit_intercept"],
                coef=tuple(map(float, data["coef"])),
                intercept=float(data["intercept"]),
                coef_std=None if data["coef_std"] is None else tuple(map(float, data["coef_std"])),
                intercept_std=data["intercept_std"],
                method=data["method"],
                epsilon=float(data["epsilon"]),
                delta=float(data["delta"]),
                private=data["private"],
                n=data["n"],
            )
            if list(bounds.columns(model.fit_intercept)) != data["columns"]:
                raise ValueError("columns")
            if len(model.coef) != len(data["columns"]):
                raise ValueError("coef")
        except (KeyError, TypeError, ValueError):
            raise DataError(f"the model must be a JSON document of format {FORMAT!r}.") from None
        return model

    @classmethod
    def load(cls, path: Path) -> SavedModel:
        """Read a model from a file, or from the folder that ``fastmix fit`` wrote."""
        file = path / "model.json" if path.is_dir() else path
        return cls.from_json(file.read_text(encoding="utf-8"))

    def predict(self, columns: Columns) -> npt.NDArray[np.float64]:
        """Return predictions for the rows of a table; values are clipped as in the fit."""
        X, _ = encode(columns, self.bounds, intercept=self.fit_intercept, target=False)
        return np.asarray(X @ np.array(self.coef) + self.intercept)


def fit_facts(model: PrivateLinearRegression, bounds: PublicBounds, seconds: float) -> FitFacts:
    """Gather what the report of a fit says, from public and released values only.

    Parameters
    ----------
    model : PrivateLinearRegression
        The fitted model.
    bounds : PublicBounds
        Public bounds of the table.
    seconds : float
        Duration of the fit.

    Returns
    -------
    FitFacts
        For `fastmix.render.fit_report`.
    """
    ranges = [
        (name, *_range(feature))
        for feature in bounds.features
        for name in feature.columns(bool(model.fit_intercept))
    ]
    std = getattr(model, "coef_std_", [None] * len(ranges))
    noise = getattr(model, "coef_noise_std_", [None] * len(ranges))
    effects = [
        Effect(name, text, width, float(value), _float(s), _float(e))
        for (name, text, width), value, s, e in zip(ranges, model.coef_, std, noise, strict=True)
    ]
    intercept = Effect(
        "intercept", "", 1.0, float(model.intercept_), getattr(model, "intercept_std_", None)
    )
    data = model.privacy_.data
    given = {f.name for f in fields(PrivateLinearRegression)}
    plan = {k: v for k, v in model.privacy_.parameters.items() if k not in given}
    return FitFacts(
        target=bounds.target.name,
        target_bounds=(bounds.target.lower, bounds.target.upper),
        private=model.privacy_.private,
        explanation=explain(model.privacy_),
        effects=effects,
        intercept=intercept if model.fit_intercept else None,
        residual_std=getattr(model, "residual_std_", None),
        residual_clip=data.get("residuals_clipped_at"),
        spent=model.privacy_.spent,
        n=data["n_samples"],
        method=model.method_,
        plan=plan,
        seconds=seconds,
        certificate=model.privacy_.to_json(),
    )


def _range(feature: Feature) -> tuple[str, float]:
    """Return the public range of a feature in words, and its width."""
    if isinstance(feature, Number):
        return f"{feature.lower:g} to {feature.upper:g}", feature.upper - feature.lower
    return "0 or 1", 1.0


def _float(value: float | None) -> float | None:
    return None if value is None else float(value)
