"""A fitted estimator as a document, ``model.json``: public and released values only.

The document contains the certificate of the fit, and the certificate contains the digest of the
rest of the document. `fastmix.load` builds the estimator again.
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fastmix._validation import value_error
from fastmix.accounting.ledger import write_atomically
from fastmix.certificate import PrivacyCertificate
from fastmix.certificate.documents import digest, jsonable, write_document
from fastmix.certificate.signing import SIGNATURE, SUMS, Signer
from fastmix.estimators._found import BoundsRelease, FoundBounds, FoundNorm
from fastmix.estimators.evaluation import PrivateScores
from fastmix.schema import Labels, Number, PublicBounds

FORMAT = "fastmix-model-7"

#: Entries that the digest of a model leaves out: the certificate contains the digest.
OUTSIDE = ("certificate", "digest")

#: Attributes of a fit that the document contains, where the fit stored them. All others follow
#: from the certificate.
RELEASED = (
    *("coef_", "intercept_", "n_steps_", "gamma_", "eta_", "gradient_noise_"),
    *("coef_std_", "coef_noise_std_", "coef_bias_bound_", "coef_identified_"),
    *("intercept_std_", "intercept_identified_", "residual_std_", "residual_std_identified_"),
    *("_level_counts", "_count_errors", "smoothing_", "scores_"),
)
#: Symmetric matrices, one or several, of which the document contains the lower triangles.
MATRICES = ("coef_covariance_", "_coef_noise", "_coef_bias")

#: Parameters that follow from the certificate, or that a file must not contain: a seed would
#: reveal the noise.
_ELSEWHERE = {"accountant", "bounds", "bounds_X", "bounds_y", "class_weight", "classes"}
_ELSEWHERE |= {"data_norm", "random_state"}


def model_document(
    model: Any, signer: Signer | None = None
) -> tuple[dict[str, Any], PrivacyCertificate]:
    """Return a fitted estimator as plain JSON types, and the certificate in them.

    The certificate names the key of the ``signer`` who is going to sign both.
    """
    known: PrivacyCertificate = model.privacy_
    schema, intercept = public_schema(model), known.parameters["fit_intercept"]
    facts = {**known.data, "missing": schema.missing, "encoding": schema.to_dict()}
    facts.setdefault("categories", [*map(len, model._categories or model._dummies)])
    kind = "named array" if hasattr(model, "feature_names_in_") else "array"
    document = jsonable(
        {
            "format": FORMAT,
            "estimator": type(model).__name__,
            "parameters": _parameters(model),
            "fitted_to": "table" if hasattr(model, "schema_") else kind,
            "found": _found(model),
            "columns": schema.columns(intercept),
            "fitted": _fitted(model),
        }
    )
    key = None if signer is None else signer.fingerprint
    certificate = replace(known, data=facts, model=digest(document), signer=key)
    bound = {"certificate": certificate.to_dict(), "digest": certificate.model}
    return {**document, **bound}, certificate


def save_model(model: Any, path: Path, *, replace: bool, signer: Signer | None = None) -> None:
    """Write a fitted estimator and its certificate into a folder."""
    document, certificate = model_document(model, signer)
    if path.exists() and not path.is_dir():
        raise value_error("path", "be a folder", str(path))
    if path.is_dir() and any(path.iterdir()):
        if not replace:
            raise ValueError(
                f"The folder {str(path)!r} is not empty. Choose another folder, or pass "
                "replace=True to replace the model in it."
            )
        for name in ("report.html", SUMS, SIGNATURE):  # of the earlier model
            (path / name).unlink(missing_ok=True)
    path.mkdir(parents=True, exist_ok=True)
    texts = {"model.json": write_document(document), "certificate.json": certificate.to_json()}
    contents = {name: f"{text}\n".encode() for name, text in texts.items()}
    contents |= {} if signer is None else signer.files(contents)
    for name, content in contents.items():
        write_atomically((path / name).resolve(), content)


def public_schema(model: Any) -> PublicBounds:
    """Return the bounds of the table, or the bounds of an array under names for its columns."""
    known: PublicBounds | None = getattr(model, "schema_", None)
    if known is not None:
        return known
    if model.bounds_X_ is None:
        raise ValueError(
            "a model must have bounds of its features to be saved; this one was fitted with "
            "data_norm alone. Pass bounds or bounds_X."
        )
    d = model.n_features_in_
    names = [str(name) for name in getattr(model, "feature_names_in_", map("x{}".format, range(d)))]
    target = "y"
    while target in names:
        target += "_"
    sides = zip(names, *model.bounds_X_, strict=True)
    numbers = tuple(Number(name, float(low), float(high)) for name, low, high in sides)
    return PublicBounds(_target(target, model), numbers)


def _target(name: str, model: Any) -> Number | Labels:
    """Return the target with its bounds; two labels that are numbers are bounds, too."""
    classes = getattr(model, "classes_", None)
    if classes is None:
        low, high = model.bounds_y_
    elif len(classes) == 2 and classes.dtype.kind in "biuf":
        low, high = classes
    else:
        return Labels(name, tuple(classes.tolist()))
    return Number(name, float(low), float(high))


def _parameters(model: Any) -> dict[str, Any]:
    """Return the parameters that the certificate does not state, such as a score_share of 0."""
    given = model.get_params(deep=False)
    names = unstated(given, model.privacy_.parameters)
    return {name: value for name, value in given.items() if name in names}


def unstated(names: Iterable[str], stated: Iterable[str]) -> set[str]:
    """Return the names of parameters that the document contains beside those of its certificate."""
    return {*names} - {*stated} - _ELSEWHERE


def _found(model: Any) -> dict[str, list[Any]]:
    """Return the releases that found bounds of an array, by parameter."""
    given = {name: getattr(model, name, None) for name in ("bounds_X", "bounds_y", "data_norm")}
    return {
        name: list(value.release)
        for name, value in given.items()
        if isinstance(value, FoundBounds | FoundNorm)
    }


def restore_bounds(model: Any, found: dict[str, list[Any]]) -> None:
    """Give an estimator the bounds of its fit as parameters, but not bounds from the data.

    The estimator has its certificate, ``bounds_X_``, ``bounds_y_`` and, for a table, ``schema_``.
    """
    facts, taken = model.privacy_.data, model.privacy_.data["taken_from_data"]
    given = {"bounds_X": model.bounds_X_, "bounds_y": model.bounds_y_}
    given["data_norm"] = model.privacy_.parameters["data_norm"]
    if model._ends == "classes":
        model.classes = given["classes"] = facts["classes"]
        model.classes_, _ = model._labels()
        weights = dict(zip(model.classes_.tolist(), facts["class_weight"], strict=True))
        model.class_weight = None if set(weights.values()) == {1.0} else weights
        del given["bounds_y"]
    if hasattr(model, "schema_"):
        model.bounds = None if taken else model.schema_
        given = dict.fromkeys(given)
    for name, (epsilon, delta, rows, label) in found.items():
        most = None if rows is None else int(rows)
        release = BoundsRelease(float(epsilon), float(delta), most, str(label))
        value: Any = given[name]
        if name == "data_norm":
            given[name] = FoundNorm(value, release)
        else:
            lower, upper = value
            given[name] = FoundBounds(lower, upper, release)
    model.set_params(**{name: None if name in taken else each for name, each in given.items()})


def _fitted(model: Any) -> dict[str, Any]:
    """Return released values, and values that follow from them, by attribute."""
    stored = vars(model)
    made = {name: _plain(stored[name]) for name in RELEASED if name in stored}
    triangles = {name: stored[name] for name in MATRICES if name in stored}
    return made | {
        name: C[..., *np.tril_indices(C.shape[-1])].tolist() for name, C in triangles.items()
    }


def _plain(value: Any) -> Any:
    """Return an attribute as plain types."""
    if isinstance(value, PrivateScores):
        return {name: score._asdict() for name, score in value.scores.items()}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value.tolist() if isinstance(value, np.ndarray) else value
