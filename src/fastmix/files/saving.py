"""Models in folders: what ``model.save`` writes, ``fastmix.load`` reads, and checks compare."""

import os
from pathlib import Path
from typing import Any

from fastmix._validation import value_error
from fastmix.accounting.ledger import write_atomically
from fastmix.certificate.documents import write_document
from fastmix.errors import DataError
from fastmix.files.model import SavedModel, bound_pair
from fastmix.paper import METHODS
from fastmix.schema import Labels, Number, PublicBounds

__all__ = ["load", "save_model", "verify_pair"]


def load(path: str | os.PathLike[str]) -> SavedModel:
    """Read a model that ``model.save`` or ``fastmix fit`` wrote.

    Parameters
    ----------
    path : path
        The folder, or the file ``model.json`` in it.

    Returns
    -------
    fastmix.files.model.SavedModel
        The model, which predicts for pandas, Polars and Arrow tables, or for arrays.

    Raises
    ------
    fastmix.errors.DataError
        If there is no model, or it is damaged, was changed, or does not belong to the certificate
        in the same folder. The digests that tell so need no key: whoever changes both files on
        purpose can compute them anew.
    """
    return SavedModel.load(Path(path))


def save_model(model: Any, path: Path, *, replace: bool) -> None:
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


def verify_pair(certificate: dict[str, Any], text: str) -> list[str]:
    """Say where a model does not belong to a certificate that verifies by itself."""
    try:
        model = SavedModel.from_json(text)
    except DataError as error:
        return [f"model.json: {str(error).removesuffix('.')}"]
    wrong = []
    if certificate["model"] != model.digest:
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
        "scores": (model.scores is not None, bool(asked.get("score_share"))),
    }
    return wrong + [
        f"the {name} of the model is not that of the certificate"
        for name, (one, other) in stated.items()
        if one != other
    ]


def _schema(model: Any) -> PublicBounds:
    """Return the bounds of a table, or those of an array under names for its columns."""
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
    """Return the target with its bounds, which are the labels of a model of two numbers."""
    classes = getattr(model, "classes_", None)
    if classes is None:
        low, high = model.bounds_y_
    elif len(classes) == 2 and classes.dtype.kind in "biuf":
        low, high = classes
    else:
        return Labels(name, tuple(classes.tolist()))
    return Number(name, float(low), float(high))
