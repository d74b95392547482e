"""Effects of a model: each level compared with the most frequent level of its category."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fastmix._types import FloatArray
from fastmix.engine.fit import EVIDENT
from fastmix.engine.table_inference import MOST_BIAS
from fastmix.schema.bounds import PublicBounds
from fastmix.schema.features import OTHER, Category, Feature, Labels, Number, Term
from fastmix.show import Interval
from fastmix.show.html import class_prefixes, effects

#: A level has an effect of its own if its released count is at least this many standard errors.
LEAST_COUNT = 2.0


class Contrasts(NamedTuple):
    """Effects as combinations of coefficients, the intercept last.

    A row of ``matrix`` has the weights of the columns, then the weight of the intercept. The
    intercept is for rows at the reference levels. ``pooled`` names levels with too few rows
    for an effect.
    """

    names: tuple[str, ...]
    matrix: FloatArray
    widths: tuple[float, ...]
    references: dict[str, str]
    pooled: tuple[str, ...]


class Effects(NamedTuple):
    """Effects of a fit, the intercepts last, with the widths of the public ranges of the others.

    ``references`` has the level of each category that its other levels are compared with;
    ``counted`` says whether released counts chose the references.
    """

    found: tuple[Interval, ...]
    widths: tuple[float, ...]
    references: dict[str, str]
    pooled: tuple[str, ...] = ()
    counted: bool = False

    @property
    def given(self) -> dict[str, Any]:
        """The effects as `fastmix.show.summarise` takes them."""
        beside = {"references": self.references, "pooled": self.pooled, "counted": self.counted}
        return {"effects": self.found, "widths": self.widths, **beside}


class FeatureColumns(NamedTuple):
    """A feature of a model: its columns, and its levels if it has a category.

    ``places`` are those of the coefficients, None for the level without a column. ``category`` is
    the name of the category, ``levels`` has its levels unless the part is a term, and ``rare`` is
    the place of the level that may have no rows. ``numbers`` are names and powers of the numbers
    whose product the part is.
    """

    names: tuple[str, ...]
    places: tuple[int | None, ...]
    width: float
    category: str | None = None
    levels: tuple[str, ...] = ()
    rare: int | None = None
    numbers: frozenset[tuple[str, int]] = frozenset()


def table_parts(bounds: PublicBounds) -> list[FeatureColumns]:
    """Return the parts of a model of a table with an intercept."""
    found, at = [], 0
    for feature in bounds.features:
        names, width = feature.columns(False), public_range(feature)[1]
        end, category = at + len(feature.columns(True)), _category(feature)
        if category is None:
            found.append(FeatureColumns(names, (at,), width, numbers=_numbers(feature)))
        else:
            levels = category.levels if feature is category else ()
            own = category.name, levels, category.levels.index(OTHER), _numbers(feature)
            found.append(FeatureColumns(names, (None, *range(at, end)), width, *own))
        at = end
    return found


def matrix_parts(
    names: Sequence[str], widths: Sequence[float], dummies: Sequence[Sequence[int]]
) -> list[FeatureColumns]:
    """Return the parts of a model of a matrix with dummies."""
    found = []
    for columns in dummies:
        own = [names[j] for j in columns]
        # Names such as city_Ulm and city_Bonn have the name of their category in front.
        start = 1 + max(own[0].rfind(mark) for mark in "_=")
        if start < 2 or not all(name.startswith(own[0][:start]) for name in own):
            start = 0
        title = own[0][: start - 1] if start else f"{own[0]}...{own[-1]}"
        levels = ("none", *(name[start:] for name in own))
        given = title, levels, 0
        found.append(FeatureColumns((f"{title}: none", *own), (None, *columns), 1.0, *given))
    taken = {j for columns in dummies for j in columns}
    rest = [j for j in range(len(names)) if j not in taken]
    return [*(FeatureColumns((names[j],), (j,), widths[j]) for j in rest), *found]


def contrasts(
    parts: Sequence[FeatureColumns], counts: Sequence[FloatArray], errors: Sequence[FloatArray]
) -> Contrasts:
    """Return effects for released counts of the levels of each category, beside an intercept.

    ``errors`` are the standard errors of the counts.
    """
    categories = [part for part in parts if part.levels]
    if [*map(len, counts)] != [len(part.levels) for part in categories]:
        raise ValueError("counts")
    known = {
        part.category: (np.asarray(own), np.asarray(error))
        for part, own, error in zip(categories, counts, errors, strict=True)
    }
    chosen = {name: int(np.argmax(own)) for name, (own, _) in known.items()}
    intercept = 1 + max(at for part in parts for at in part.places if at is not None)

    def weights(part: FeatureColumns, level: int) -> FloatArray:
        """Return the weights of the coefficient of a level; one level has none."""
        row = np.zeros(intercept + 1)
        if (at := part.places[level]) is not None:
            row[at] = 1.0
        return row

    names: list[str] = []
    rows: list[FloatArray] = []
    widths: list[float] = []
    pooled: list[str] = []
    for part in parts:
        if part.category is None:
            row = weights(part, 0)
            # With its product with a category, the slope of a number is the slope at the reference.
            for term in parts:
                if term.category and term.numbers and term.numbers == part.numbers:
                    row += weights(term, chosen[term.category])
            names.append(part.names[0])
            rows.append(row)
            widths.append(part.width)
            continue
        alone = part.levels or any(
            each.category is None and each.numbers == part.numbers for each in parts
        )
        # Without its product of numbers, the first level of a term has no slope.
        reference = chosen[part.category] if alone else 0
        count, error = known[part.category]
        for level, name in enumerate(part.names):
            if level == reference:
                continue
            least = EVIDENT if level == part.rare else LEAST_COUNT
            if count[level] < least * error[level]:
                if level != part.rare:
                    pooled.append(name)
                continue
            names.append(name)
            rows.append(weights(part, level) - weights(part, reference))
            widths.append(part.width)
    last = np.zeros(intercept + 1)
    last[-1] = 1.0
    last += sum(weights(part, chosen[part.category]) for part in categories)
    references = {str(each.category): each.levels[chosen[each.category]] for each in categories}
    matrix = np.array([*rows, last])
    return Contrasts((*names, "intercept"), matrix, tuple(widths), references, tuple(pooled))


def contrast_errors(
    model: Any, made: Contrasts, of: int = 0
) -> tuple[FloatArray | None, FloatArray | None]:
    """Return standard errors of effects, and the part by noise; two Nones without intervals.

    The standard error is infinite where the bias of the ridge may be too large a share of it.
    With more than two classes, ``of`` is the place of one of them.
    """
    if not hasattr(model, "coef_covariance_"):
        return None, None
    matrices = model.coef_covariance_, model._coef_noise, model._coef_bias
    if matrices[0].ndim == 3:
        matrices = tuple(each[of] for each in matrices)
    total, noise, bias = (
        np.maximum(np.sum((made.matrix @ C) * made.matrix, axis=1), 0.0) for C in matrices
    )
    # Rounding may leave no variance.
    known = (bias <= MOST_BIAS * total) & (total > 0.0)
    return np.where(known, np.sqrt(total + bias), np.inf), np.sqrt(noise)


def level_effects(
    made: Contrasts,
    coefficients: FloatArray,
    std: Sequence[float] | FloatArray | None = None,
    noise: Sequence[float] | FloatArray | None = None,
) -> Effects:
    """Return effects for coefficients, the intercept last, with standard errors if any."""
    values = made.matrix @ coefficients
    errors = [[None] * len(values) if each is None else map(float, each) for each in (std, noise)]
    found = [Interval(*each) for each in zip(made.names, values.tolist(), *errors, strict=True)]
    return Effects(tuple(found), made.widths, made.references, made.pooled, True)


def column_effects(found: Sequence[Interval], bounds: PublicBounds, intercept: bool) -> Effects:
    """Return coefficients as effects where no counts of levels were released.

    With an intercept, levels are compared with the first level of their category. With several
    classes, the coefficients come class by class, then all intercepts.
    """
    widths = [public_range(each)[1] for each in bounds.features for _ in each.columns(intercept)]
    categories = [each for each in bounds.features if isinstance(each, Category) and intercept]
    references = {each.name: each.levels[0] for each in categories}
    classes = len(found) // (len(widths) + intercept)
    return Effects(tuple(found), tuple(widths * classes), references)


def model_effects(model: Any) -> Effects:
    """Return the effects of a fitted model.

    Levels are compared with the most frequent level of their category where the fit released
    counts of levels, and with the first level of a table otherwise.
    """
    counts, intercept = getattr(model, "_level_counts", None), bool(model.fit_intercept)
    if counts is not None:
        return _of_classes(model, contrasts(parts_of(model), counts, model._count_errors))
    if hasattr(model, "schema_"):
        schema = model.schema_
        return column_effects(effects(model, schema.columns(intercept)), schema, intercept)
    ends, found = model.bounds_X_, tuple(effects(model))
    widths = () if ends is None else tuple(np.ravel(ends[1]) - np.ravel(ends[0]))
    return Effects(found, widths * len(np.atleast_2d(model.coef_)), {})


def _of_classes(model: Any, made: Contrasts) -> Effects:
    """Return the contrasts of a model, those of each class where there are more than two."""
    coef, intercepts = np.atleast_2d(model.coef_), np.ravel(model.intercept_)
    classes = [
        level_effects(made, np.append(*own), *contrast_errors(model, made, of))
        for of, own in enumerate(zip(coef, intercepts, strict=True))
    ]
    if len(classes) == 1:
        return classes[0]
    named = [
        [each._replace(name=f"{label}{each.name}") for each in one.found]
        for label, one in zip(class_prefixes(model), classes, strict=True)
    ]
    slopes = [each for own in named for each in own[:-1]]
    found = (*slopes, *(own[-1] for own in named))
    return classes[0]._replace(found=found, widths=made.widths * len(classes))


def parts_of(model: Any) -> list[FeatureColumns]:
    """Return the parts of a fitted model."""
    if hasattr(model, "schema_"):
        return table_parts(model.schema_)
    d, (low, high) = model.n_features_in_, model.bounds_X_
    names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(d)])
    return matrix_parts([*map(str, names)], [*(high - low)], model._dummies)


def level_counts(model: Any) -> dict[str, dict[str, float]]:
    """Return the released numbers of rows of each level of each category."""
    counts = getattr(model, "_level_counts", None)
    if counts is None:
        raise AttributeError("level_counts_ needs a fit that counts the levels of categories.")
    categories = [part for part in parts_of(model) if part.levels]
    return {
        str(part.category): dict(zip(part.levels, map(float, own), strict=True))
        for part, own in zip(categories, counts, strict=True)
    }


def public_range(feature: Feature | Labels) -> tuple[str, float]:
    """Return the public range of a feature in words, and its width."""
    if isinstance(feature, Labels):
        return feature.words, 1.0
    if isinstance(feature, Number):
        return feature.words, feature.upper - feature.lower
    if isinstance(feature, Term):
        return feature.words, feature.range[1] - feature.range[0]
    return "0 or 1", 1.0


def _category(feature: Feature) -> Category | None:
    """Return the category of a feature, if it has one."""
    return (
        feature.category
        if isinstance(feature, Term)
        else (feature if isinstance(feature, Category) else None)
    )


def _numbers(feature: Feature) -> frozenset[tuple[str, int]]:
    """Return the names and powers of the numbers whose product a feature is."""
    if isinstance(feature, Term):
        return frozenset((f.name, power) for f, power in feature.factors if isinstance(f, Number))
    return frozenset({(feature.name, 1)} if isinstance(feature, Number) else ())
