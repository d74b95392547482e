"""A fitted model in a file: JSON, exact to the last bit, and no pickle."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from fastmix._types import FloatArray
from fastmix._validation import value_error
from fastmix.accounting.ledger import write_atomically
from fastmix.certificate.certificate import PrivacyCertificate
from fastmix.certificate.documents import digest, jsonable, read_document, write_document
from fastmix.data.values import as_reals, check_finite
from fastmix.errors import DataError
from fastmix.estimators import PrivateRegressor
from fastmix.tables import Columns, Number, PublicBounds, encode
from fastmix.tables.frames import frame_columns

__all__ = ["SavedModel", "bound_pair", "load", "read_text", "save_model", "verify_pair"]

FORMAT = "fastmix-model-2"

#: Entries that must be of a kind, to the letter.
_KINDS = {"fastmix": str, "fit_intercept": bool, "method": str, "n": int, "private": bool}


@dataclass(frozen=True)
class SavedModel:
    """What is needed to predict: coefficients and the public encoding of a table.

    Coefficients are those of the encoded columns, in the user's units, with standard errors where
    the fit released what they need; ``certificate`` is the digest of the certificate of the fit.
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
    certificate: str | None = None

    @classmethod
    def of(cls, model: PrivateRegressor, bounds: PublicBounds) -> SavedModel:
        """Return what is to be kept of a fitted model."""
        std = getattr(model, "coef_std_", None)
        return cls(
            bounds=bounds,
            fit_intercept=bool(model.fit_intercept),
            coef=tuple(model.coef_.tolist()),
            intercept=float(model.intercept_),
            coef_std=None if std is None else tuple(std.tolist()),
            intercept_std=getattr(model, "intercept_std_", None),
            method=getattr(model, "method_", model.privacy_.parameters["method_"]),
            epsilon=model.privacy_.epsilon,
            delta=model.privacy_.delta,
            private=model.privacy_.private,
            n=model.privacy_.data["n_samples"],
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

    def predict(self, columns: Any) -> FloatArray:
        """Return predictions for the rows of a table; values are clipped as in the fit.

        An array has the encoded columns in their order, and is taken as it is, as the estimator
        does that was fitted to an array.
        """
        if isinstance(columns, np.ndarray):
            X = features(columns, len(self.coef))
        else:
            if not isinstance(columns, Columns):
                columns = frame_columns(columns, self.bounds, target=False)
            X, _ = encode(columns, self.bounds, intercept=self.fit_intercept, target=False)
        return np.asarray(X @ self.coef_ + self.intercept)


def features(X: FloatArray, d: int) -> FloatArray:
    """Return an array of finite numbers with d columns."""
    X = np.asarray(as_reals("X", X))
    if X.ndim != 2 or X.shape[1] != d:
        raise ValueError(f"X must have {d} columns; got an array of shape {X.shape}.")
    check_finite(X)
    return X.astype(np.float64, copy=False)


def load(path: str | os.PathLike[str]) -> SavedModel:
    """Read a model that ``model.save`` or ``fastmix fit`` wrote.

    Parameters
    ----------
    path : path
        The folder, or the file ``model.json`` in it.

    Returns
    -------
    fastmix.tables.model.SavedModel
        The model, which predicts for pandas, Polars and Arrow tables, or for arrays.
    """
    return SavedModel.load(Path(path))


def save_model(model: PrivateRegressor, path: Path, *, replace: bool) -> None:
    """Write a fitted model and its certificate into a folder."""
    saved, certificate = bound_pair(model, _schema(model))
    names = ("model.json", "certificate.json")
    if path.exists() and not path.is_dir():
        raise value_error("path", "be a folder", str(path))
    if path.is_dir() and any(path.iterdir()):
        if not replace:
            raise ValueError(
                f"The folder {str(path)!r} is not empty. Choose another folder, or pass "
                "replace=True to replace the model in it."
            )
        # A report would be that of the model before.
        (path / "report.html").unlink(missing_ok=True)
    path.mkdir(parents=True, exist_ok=True)
    for name, text in zip(names, (saved.to_json(), certificate.to_json()), strict=True):
        write_atomically((path / name).resolve(), (text + "\n").encode())


def _schema(model: PrivateRegressor) -> PublicBounds:
    """Return the bounds of a table, or those of an array under names for its columns."""
    known: PublicBounds | None = getattr(model, "schema_", None)
    if known is not None:
        return known
    if model.bounds_X_ is None:
        raise ValueError(
            "a model must have bounds of its features to be saved; this one was fitted with "
            "data_norm alone. Pass bounds or bounds_X."
        )
    d = len(model.coef_)
    names = [str(name) for name in getattr(model, "feature_names_in_", map("x{}".format, range(d)))]
    target = "y"
    while target in names:
        target += "_"
    sides = zip(names, *model.bounds_X_, strict=True)
    numbers = tuple(Number(name, float(low), float(high)) for name, low, high in sides)
    return PublicBounds(Number(target, *model.bounds_y_), numbers)


def read_text(file: Path) -> str:
    """Read a file of text."""
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise DataError(f"{file.name} must be text in UTF-8.") from None


def bound_pair(
    model: PrivateRegressor, bounds: PublicBounds
) -> tuple[SavedModel, PrivacyCertificate]:
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
        "fit_intercept": (model.fit_intercept, asked["fit_intercept"]),
        "n": (model.n, facts["n_samples"]),
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
