"""Released numbers in a model's file: coefficients, standard errors and scores, read strictly."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from fastmix.certificate.documents import read_document, read_text
from fastmix.engine.layers import Limits
from fastmix.engine.scores import Bin, Score
from fastmix.errors import DataError
from fastmix.estimators.contrasts import contrast_errors, contrasts
from fastmix.estimators.scores import NAMES, PrivateScores
from fastmix.estimators.summaries import interval_share
from fastmix.schema.bounds import PublicBounds


def released(data: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers of a model's document; what is not a number is refused."""
    return {
        "epsilon": real(data["epsilon"]),
        "delta": real(data["delta"]),
        "coef": tuple(finite(each) for line in rows(data["coef"]) for each in line),
        "intercept": intercepts([finite(each) for each in row(data["intercept"])]),
        "coef_std": reals(data["coef_std"]),
        "coef_noise_std": reals(data["coef_noise_std"]),
        "intercept_std": optional(data["intercept_std"]),
        "residual_std": optional(data["residual_std"]),
        "quantile": optional(data["quantile"]),
        "scores": scores_from_dict(data["scores"]),
        "level_counts": counts(data["level_counts"]),
        "count_noise": optional(data["count_noise"]),
        "effect_std": reals(data["effect_std"]),
        "effect_noise_std": reals(data["effect_noise_std"]),
        "interval_share": optional(data["interval_share"]),
    }


def read_beside(path: Path, name: str, beside: str) -> tuple[str, str | None]:
    """Return a file, or the one of that name in a folder, and what lies beside one of that name."""
    file = path / name if path.is_dir() else path
    other = file.with_name(beside)
    try:
        known = file.name == name and other.exists()
        return read_text(file), read_text(other) if known else None
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise DataError(f"There is no model in {str(path)!r} that can be read: {why}.") from None


def certified_model(text: str) -> Any:
    """Return the digest of the model that a certificate is about; None if it is damaged."""
    try:
        return read_document(text).get("model")
    except ValueError:
        return None


def finite(value: Any) -> float:
    """Return a finite number; refuse everything else."""
    found = real(value)
    if not math.isfinite(found):
        raise ValueError("finite")
    return found


def real(value: Any) -> float:
    """Return a number, which a document spells "inf" if it is infinite."""
    if value not in ("inf", "-inf") and type(value) not in (int, float):
        raise ValueError("number")
    return float(value)


def optional(value: Any) -> float | None:
    """Return a number, or None."""
    return None if value is None else real(value)


def reals(values: Any) -> tuple[float, ...] | None:
    """Return a list of numbers, or None."""
    return None if values is None else tuple(map(real, listed(values)))


def listed(values: Any) -> list[Any]:
    """Return a list; refuse everything else."""
    if not isinstance(values, list):
        raise ValueError("list")
    return values


def counts(values: Any) -> tuple[tuple[float, ...], ...] | None:
    """Return counts of the levels of each category, or None."""
    if values is None:
        return None
    return tuple(tuple(finite(each) for each in listed(own)) for own in listed(values))


def rows(values: Any) -> list[Any]:
    """Return coefficients as rows, one for each class where there are several."""
    return values if listed(values) and isinstance(values[0], list) else [values]


def row(values: Any) -> list[Any]:
    """Return intercepts as a list."""
    return [*values] if isinstance(values, (list, tuple)) else [values]


def intercepts(values: Any) -> float | tuple[float, ...]:
    """Return one intercept as a number, several as a tuple."""
    found = tuple(map(float, values))
    return found if len(found) > 1 else found[0]


def scores_to_dict(scores: dict[str, Score] | None) -> dict[str, Any] | None:
    """Return private scores as plain types."""
    return None if scores is None else {name: each._asdict() for name, each in scores.items()}


def scores_from_dict(data: Any) -> dict[str, Score] | None:
    """Return private scores of known names, or None."""
    if data is None:
        return None
    if not data or data.keys() - NAMES.keys():
        raise ValueError("scores")
    return {name: _score(**each) for name, each in data.items()}


def _score(*, bins: Any, limits: Any, clip: Any, baseline: Any, **numbers: Any) -> Score:
    if numbers.keys() != {"value", "std", "hidden"}:
        raise ValueError("scores")
    return Score(
        clip=optional(clip),
        baseline=optional(baseline),
        bins=tuple(Bin(*map(real, each)) for each in listed(bins)),
        limits=tuple(Limits(*map(real, each)) for each in listed(limits)),
        **{name: real(each) for name, each in numbers.items()},
    )


def scores_of(model: Any) -> dict[str, Score] | None:
    """Return the private scores that a fit has released, or None."""
    known: PrivateScores | None = getattr(model, "scores_", None)
    return None if known is None else known.scores


def levels_of(model: Any, bounds: PublicBounds) -> dict[str, Any]:
    """Return what a saved model keeps of levels, and what intervals cost."""
    kept: dict[str, Any] = {"interval_share": interval_share(model.privacy_)}
    known = getattr(model, "_level_counts", None)
    if known is not None:
        kept["level_counts"] = tuple(tuple(map(float, each)) for each in known)
        kept["count_noise"] = float(model._count_noise)
        errors = contrast_errors(model, contrasts(bounds, known, model._count_noise))
        for name, each in zip(("effect_std", "effect_noise_std"), errors, strict=True):
            kept[name] = None if each is None else tuple(each.tolist())
    return kept


def restore(model: Any, saved: Any) -> None:
    """Give an estimator the standard errors and scores of a saved model, as its fit stored them."""
    for name in ("coef_std", "coef_noise_std"):
        if (errors := getattr(saved, name)) is not None:
            setattr(model, f"{name}_", np.array(errors).reshape(model.coef_.shape))
    if saved.intercept_std is not None:
        model.intercept_std_ = saved.intercept_std
    if saved.residual_std is not None:
        model.residual_std_, model.residual_std_identified_ = saved.residual_std, True
    if saved.level_counts is not None:
        model._level_counts = tuple(map(np.array, saved.level_counts))
        model._count_noise = saved.count_noise
    if saved.scores is not None:
        model.scores_ = PrivateScores(saved.scores, None, saved.n)
