"""Transformers that a pipeline has fitted in front of a private model.

scikit-learn gives a step no way to know its pipeline, so the fits under way are found on the call
stack. Transformers that were fitted outside of a pipeline cannot be seen. Those that learned from
the data are named in a warning; dummies that an encoder made from public lists are recognised.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from itertools import accumulate, pairwise
from types import FrameType
from typing import Any

from fastmix.errors import PrivacyLeakWarning, caller_level
from fastmix.estimators.encoder import PublicEncoder
from fastmix.schema.categories import dummy_columns

#: The columns of dummies of each category.
Dummies = tuple[tuple[int, ...], ...]

#: Attributes of every fitted transformer: names and numbers of columns.
_NAMES = {"n_features_in_", "feature_names_in_", "n_features_out_", "n_output_features_"}

#: Parameters with which transformers of scikit-learn learn nothing from values: the value that a
#: parameter must have, or a set of values that it must not have.
_PUBLIC: dict[str, dict[str, Any]] = {
    "GaussianRandomProjection": {"n_components": {"auto"}},
    "MissingIndicator": {"features": "all"},
    "OneHotEncoder": {"categories": {"auto"}, "min_frequency": None, "max_categories": None},
    "OrdinalEncoder": {"categories": {"auto"}, "min_frequency": None, "max_categories": None},
    "PolynomialCountSketch": {},
    "PolynomialFeatures": {},
    "RBFSampler": {"gamma": {"scale"}},
    "SimpleImputer": {"strategy": "constant", "add_indicator": False, "keep_empty_features": True},
    "SkewedChi2Sampler": {},
    "SparseRandomProjection": {"n_components": {"auto"}},
    "SplineTransformer": {"knots": {"uniform", "quantile"}},
}


def _is_a(owner: Any, module: str, name: str) -> bool:
    """Whether an object is of a class of scikit-learn, without importing its module."""
    known = getattr(sys.modules.get(f"sklearn.{module}"), name, None)
    return known is not None and isinstance(owner, known)


def warn_of_fitted_steps(model: Any) -> None:
    """Warn of transformers that learned from the data before a model in the same pipeline."""
    found = [
        f"{name!r} ({type(step).__name__})" for name, step in _in_front() if _has_learned(step)
    ]
    if found:
        warnings.warn(
            f"The pipeline fitted {', '.join(found)} to the data before {type(model).__name__}. "
            "What a transformer learns from the data is not private, and the certificate does not "
            "cover it. Use PublicEncoder, which clips, imputes and encodes by public bounds, or "
            "give the transformer public constants.",
            PrivacyLeakWarning,
            stacklevel=caller_level(),
        )


def _in_front() -> Iterator[tuple[str, Any]]:
    """Yield the steps of all pipelines whose last step is being fitted, the outermost last."""
    inside: list[Any] = []  # pipelines that are fitting a step before the last
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name in ("fit", "_fit"):
            owner: Any = frame.f_locals.get("self")
            in_pipeline = _is_a(owner, "pipeline", "Pipeline")
            if in_pipeline and frame.f_code.co_name == "_fit":
                inside.append(owner)
            elif in_pipeline and not any(each is owner for each in inside):
                for name, step in owner.steps[:-1]:
                    yield from _leaves(name, step)
            elif _is_a(owner, "compose", "TransformedTargetRegressor"):
                yield from _leaves("transformer", getattr(owner, "transformer_", None))
        frame = frame.f_back  # type: ignore[assignment]


def _leaves(name: str, step: Any) -> Iterator[tuple[str, Any]]:
    """Yield a transformer, or those that it consists of."""
    if _is_a(step, "pipeline", "Pipeline"):
        parts = step.steps
    elif _is_a(step, "pipeline", "FeatureUnion"):
        parts = step.transformer_list
    elif _is_a(step, "compose", "ColumnTransformer"):
        parts = [each[:2] for each in getattr(step, "transformers_", ())]
    else:
        yield name, step
        return
    for inner, part in parts:
        yield from _leaves(inner, part)


def _has_learned(step: Any) -> bool:
    """Whether a fitted transformer stores anything that may come from values."""
    kind = type(step)
    if step is None or isinstance(step, str) or kind.__module__.startswith("fastmix."):
        return False
    if kind.__module__.startswith("sklearn.") and kind.__name__ in _PUBLIC:
        return not all(
            _is_given(getattr(step, name, None), asked)
            for name, asked in _PUBLIC[kind.__name__].items()
        )
    kept = (name for name in vars(step) if name.endswith("_") and not name.startswith("_"))
    return any(name not in _NAMES for name in kept)


def _is_given(value: Any, asked: Any) -> bool:
    """Whether a parameter has the required value, or none of a set of forbidden ones."""
    if isinstance(asked, set):
        return not (isinstance(value, str) and value in asked)
    return bool(value is asked or (isinstance(value, str) and value == asked))


def declared_dummies(given: Any, columns: tuple[int, list[Any] | None] | None) -> Dummies:
    """Return the dummies that the user gave, or that an encoder in front of the model has made.

    ``columns`` are the number of columns of the data and their labels.
    """
    if columns is None:
        return ()  # the check of the data will raise
    if given is not None:
        return dummy_columns(given, *columns)
    width, dummies = _made(_encoder())
    return dummies if width == columns[0] else ()


def _encoder() -> Any:
    """Return the step right in front of the model; None unless a pipeline itself fits the model."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        owner: Any = frame.f_locals.get("self") if frame.f_code.co_name == "fit" else None
        if owner is not None and not type(owner).__module__.startswith("fastmix."):
            return _last(owner.steps[:-1]) if _is_a(owner, "pipeline", "Pipeline") else None
        frame = frame.f_back
    return None


def _last(steps: Any) -> Any:
    """Return the last step that changes columns."""
    return next((step for _, step in reversed(steps) if step not in (None, "passthrough")), None)


def _made(step: Any) -> tuple[int, Dummies]:
    """Return the number of columns that a fitted transformer makes, and the dummies among them.

    Dummies count if their levels were given and not learned from the data.
    """
    if isinstance(step, PublicEncoder):
        return len(step.schema_.columns(step.drop_first)), step.schema_.categories(step.drop_first)
    if _is_a(step, "pipeline", "Pipeline"):
        return _made(_last(step.steps))
    if _is_a(step, "compose", "ColumnTransformer"):
        parts = [(step.output_indices_[name], part) for name, part, _ in step.transformers_]
        made = [(at, *_made(part)) for at, part in parts]
        return max((at.stop for at, _ in parts), default=0), tuple(
            tuple(at.start + j for j in columns)
            for at, width, dummies in made
            for columns in dummies
            if width == at.stop - at.start
        )
    if not _is_a(step, "preprocessing", "OneHotEncoder") or _has_learned(step):
        return 0, ()
    dropped = [None] * len(step.categories_) if step.drop_idx_ is None else step.drop_idx_
    sizes = [
        len(known) - (at is not None) for known, at in zip(step.categories_, dropped, strict=True)
    ]
    ends = list(accumulate(sizes, initial=0))
    return ends[-1], tuple(tuple(range(*pair)) for pair in pairwise(ends) if pair[0] < pair[1])
