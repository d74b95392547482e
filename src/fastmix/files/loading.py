"""Saved models: the estimator that ``model.save`` or ``fastmix fit`` wrote, built again."""

import os
import warnings
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from fastmix.certificate import PrivacyCertificate
from fastmix.certificate.documents import digest, read_document, read_text, write_document
from fastmix.certificate.signing import check_signature
from fastmix.certificate.verify import INCOMPLETE
from fastmix.engine.population import Population
from fastmix.errors import DataError, ReproducibleNoiseWarning
from fastmix.estimators import EngineModel, PrivateModel
from fastmix.estimators.evaluation import PrivateScores
from fastmix.estimators.saving import FORMAT, MATRICES, OUTSIDE, RELEASED, restore_bounds, unstated
from fastmix.files.released import (
    array_of,
    counts,
    finite,
    optional,
    parameter,
    real,
    scores,
    symmetric,
    truth,
    whole,
)
from fastmix.paper import METHODS
from fastmix.schema import PublicBounds
from fastmix.schema.categories import dummy_columns

__all__ = ["load", "read_model", "verify_pair"]

_ENTRIES = ["format", "estimator", "parameters", "fitted_to", "found", "columns", "fitted"]
_ENTRIES += ["certificate", "digest"]

#: Attributes that every fit stores, and attributes that a fit stores together or not at all.
_ALWAYS = {"coef_", "intercept_", "n_steps_", "gamma_", "eta_", "gradient_noise_"}
_TOGETHER = (
    {
        *("coef_std_", "coef_noise_std_", "coef_bias_bound_", "coef_identified_"),
        *("intercept_std_", "intercept_identified_", *MATRICES),
    },
    {"residual_std_", "residual_std_identified_"},
    {"_level_counts", "_count_errors"},
)


def load(
    path: str | os.PathLike[str], *, key: str | os.PathLike[str] | None = None
) -> PrivateModel:
    """Read a model that ``model.save`` or ``fastmix fit`` wrote.

    Parameters
    ----------
    path : path
        The folder, or the file ``model.json`` in it.
    key : path, default=None
        Public Ed25519 key, a PEM file: refuse a model that this key has not signed.

    Returns
    -------
    estimator
        The fitted estimator, of the class that was saved. Its accountant and its random state are
        None, because files do not contain them: set an accountant before you fit it again.

    Raises
    ------
    fastmix.errors.DataError
        If there is no model, or the model is damaged, was changed, has the format of another
        version, does not belong to the certificate in the same folder, or is signed and a signed
        file was changed. Without a ``key``, whoever changes all files on purpose can compute the
        digests anew.
    """
    path = Path(path)
    file = path / "model.json" if path.is_dir() else path
    beside = file.with_name("certificate.json")
    try:
        certified = file.name == "model.json" and beside.exists()
        text, other = read_text(file), read_text(beside) if certified else None
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise DataError(f"There is no model in {str(path)!r} that can be read: {why}.") from None
    model = read_model(text)
    if other is not None and not _is_certificate_of(text, other):
        raise DataError(
            "model.json does not match certificate.json in the same folder: one of them was "
            "changed, or comes from another fit. Use both as one fit wrote them."
        )
    check_signature(file, model.privacy_.signer, None if key is None else Path(key))
    if model.privacy_.noise == "seeded":
        warnings.warn(
            "the noise of this model was seeded, so whoever knows the seed can remove it and the "
            "model is NOT private.",
            ReproducibleNoiseWarning,
            stacklevel=2,
        )
    return model


def read_model(text: str) -> PrivateModel:
    """Build an estimator from its document; refuse a document that is damaged or was changed."""
    try:
        data = read_document(text)
        if str(data["format"]).startswith("fastmix-model-") and data["format"] != FORMAT:
            raise DataError(
                f"the model must be a JSON document of format {FORMAT!r}; got {data['format']!r}, "
                "the format of another version of fastmix. Fit the model again."
            )
        certificate = data["certificate"]
        same = (
            data["digest"] == digest(data, without=OUTSIDE) == certificate["model"]
            and digest(certificate, without=("digest",)) == certificate["digest"]
        )
        model: PrivateModel = _restored(data)
        str(model.summary())  # fails if released values do not fit together
    except INCOMPLETE as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"the model must be a JSON document of format {FORMAT!r}.") from None
    if not same:
        raise DataError(
            "the model was changed after it was written: its digest is not that of its "
            "contents. Use the file as the fit wrote it, or fit again."
        )
    return model


def verify_pair(certificate: dict[str, Any], text: str) -> list[str]:
    """Return the ways in which a model differs from its certificate, which verifies by itself."""
    try:
        model = read_model(text)
    except DataError as error:
        return [f"model.json: {str(error).removesuffix('.')}"]
    data = read_document(text)
    wrong = []
    if certificate["model"] != data["digest"]:
        wrong.append(
            "model.json does not match the certificate: it was changed, or comes from another fit"
        )
    own: dict[str, Any] = data["certificate"]
    if differ := [
        name for name in {**own, **certificate} if own.get(name) != certificate.get(name)
    ]:
        wrong.append(f"the certificate in model.json differs in {', '.join(differ)}")
    asked = certificate["parameters"]
    stored = {"coef_std_": asked["inference"], "scores_": bool(asked.get("score_share"))}
    return wrong + [
        f"the model must have {name} if and only if the fit released it"
        for name, expected in stored.items()
        if hasattr(model, name) != expected
    ]


def _is_certificate_of(text: str, other: str) -> bool:
    """Tell whether a certificate is the one that a model contains."""
    try:
        return digest(read_document(other)) == digest(read_document(text)["certificate"])
    except ValueError:
        return False


def _restored(data: dict[str, Any]) -> Any:
    """Build an estimator from the entries of its document, and check each of them."""
    certificate = PrivacyCertificate.from_json(write_document(data["certificate"]))
    facts, stated = certificate.data, certificate.parameters
    schema, kind = PublicBounds.from_dict(facts["encoding"]), data["fitted_to"]
    columns = schema.columns(truth(stated["fit_intercept"]))
    if (
        (list(data), data["format"]) != (_ENTRIES, FORMAT)
        or data["estimator"] != certificate.mechanism
        or data["columns"] != list(columns)
        or facts["n_features"] != len(columns)
        or kind not in ("table", "named array", "array")
    ):
        raise ValueError("entries")
    model: Any = _estimator(data["estimator"], stated, data["parameters"])
    model.privacy_, model.n_features_in_ = certificate, len(columns)
    ends = array_of(facts["bounds_y"], (2,), finite)
    sides = array_of(facts["bounds_X"], (2, len(columns)), finite)
    model.bounds_X_, model.bounds_y_ = (sides[0], sides[1]), (float(ends[0]), float(ends[1]))
    if "chosen" in facts:
        model.chosen_ = facts["chosen"]
    if kind != "array":
        model.feature_names_in_ = np.asarray(columns, dtype=object)
    if kind == "table":
        model.schema_ = schema
    if "dummies" in facts:
        model._dummies = dummy_columns(facts["dummies"], len(columns))
    restore_bounds(model, data["found"])
    model._population = _population(facts, stated)
    model._check_parameters()
    for name, value in _fitted(data["fitted"], model).items():
        setattr(model, name, value)
    return model


def _estimator(name: str, stated: dict[str, Any], others: dict[str, Any]) -> Any:
    """Return an estimator with the parameters that its certificate states, and with others."""
    classes = _classes(PrivateModel)
    if name not in classes:
        raise DataError(f"the model is of the class {name!r}: import the module that defines it.")
    method = METHODS[stated["method_"]]
    own = {field.name: parameter(stated[field.name]) for field in fields(method)}
    method(**own).check()
    if classes[name]._method is not method:
        raise ValueError("method")
    given = {field.name for field in fields(EngineModel)} - {"data_norm"}
    known = {key: parameter(value) for key, value in stated.items() if key in given} | own
    names = {field.name for field in fields(classes[name])}
    if others.keys() != unstated(names, stated):
        raise ValueError("parameters")
    known = {key: value for key, value in known.items() if key in names}
    return classes[name](**known, **{key: parameter(value) for key, value in others.items()})


def _population(facts: dict[str, Any], stated: dict[str, Any]) -> Population:
    """Return who the fit protects, as the certificate states."""
    known = Population.certified(facts, stated)
    asked = stated["max_rows_per_group"], stated.get("max_weight")
    if asked != (known.rows_per_person, known.max_weight):
        raise ValueError("population")
    return Population.given(
        groups=known.persons,
        sample_weight=known.weighted,
        max_rows_per_group=known.rows_per_person,
        max_weight=known.max_weight if known.weighted else 1.0,
        public_rows=truth(stated.get("public_rows", True)),
    )


def _classes(kind: type[Any]) -> dict[str, type[Any]]:
    """Return the subclasses by name, those of other modules too; fastmix's own come first."""
    found: dict[str, type[Any]] = {}
    for each in kind.__subclasses__():
        # A class goes before those of the same name that were derived from it.
        for name, one in {**_classes(each), each.__name__: each}.items():
            if one.__module__.startswith("fastmix.") or name not in found:
                found[name] = one
    return found


def _fitted(stored: dict[str, Any], model: Any) -> dict[str, Any]:
    """Return the released values of a fit by attribute."""
    names = stored.keys()
    if not (names >= _ALWAYS and names <= {*RELEASED, *MATRICES}):
        raise ValueError("attributes")
    if any(names & group not in (set(), group) for group in _TOGETHER):
        raise ValueError("attributes")
    d, classes = model.n_features_in_, len(getattr(model, "classes_", ()))
    several = (1 if classes == 2 else classes,) if classes else ()
    outputs = model._resolve().outputs  # quantiles
    several = several if outputs == 1 else (outputs,)
    shape, own = (*several, d), several if classes > 2 or outputs > 1 else ()
    facts = model.privacy_.data
    n = whole(facts.get("n_persons", facts["n_samples"]))
    kinds: dict[str, Callable[[Any], Any]] = {
        "coef_": lambda value: array_of(value, shape, finite),
        "intercept_": lambda value: array_of(value, several, finite),
        "n_steps_": whole,
        **dict.fromkeys(("gamma_", "eta_", "gradient_noise_"), optional),
        "smoothing_": lambda value: array_of(value, several if outputs > 1 else (), optional),
        **dict.fromkeys(
            ("coef_std_", "coef_noise_std_", "coef_bias_bound_"),
            lambda value: array_of(value, shape, real),
        ),
        "coef_identified_": lambda value: array_of(value, shape, truth),
        "intercept_std_": lambda value: array_of(value, own, real),
        "intercept_identified_": lambda value: array_of(value, own, truth),
        "residual_std_": real,
        "residual_std_identified_": truth,
        "_level_counts": counts,
        "_count_errors": counts,
        "scores_": lambda value: PrivateScores(scores(value), None, n, model._population),
        **dict.fromkeys(MATRICES, lambda value: symmetric(value, d + 1, own)),
    }
    return {name: kinds[name](value) for name, value in stored.items()}
