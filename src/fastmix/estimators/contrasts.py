"""Effects of a table: each level compared with the most frequent level of its category."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fastmix._types import FloatArray
from fastmix.engine.table_inference import MOST_BIAS
from fastmix.schema.bounds import PublicBounds
from fastmix.schema.features import OTHER, Category, Feature, Labels, Number, Term
from fastmix.show import Interval
from fastmix.show.html import class_prefixes, effects

#: A level has an effect of its own if its released count is at least this many standard deviations
#: of the noise of a count.
LEAST_COUNT = 2.0
#: The same for "other", which has no rows in most tables: noise rarely exceeds this.
LEAST_OTHER = 3.0


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


def contrasts(bounds: PublicBounds, counts: Sequence[FloatArray], noise: float) -> Contrasts:
    """Return effects for released counts of the levels of each category, beside an intercept.

    ``noise`` is the standard deviation of a count.
    """
    categories = [each for each in bounds.features if isinstance(each, Category)]
    if [*map(len, counts)] != [len(each.levels) for each in categories]:
        raise ValueError("counts")
    known = {each.name: np.asarray(own) for each, own in zip(categories, counts, strict=True)}
    chosen = {name: int(np.argmax(own)) for name, own in known.items()}
    places, at = {}, 0
    for feature in bounds.features:
        places[feature.name] = at
        at += len(feature.columns(True))
    intercept = at

    def weights(feature: Feature, level: int) -> FloatArray:
        """Return the weights of the coefficient of a level; the first level has none."""
        row = np.zeros(intercept + 1)
        if level:
            row[places[feature.name] + level - 1] = 1.0
        return row

    names: list[str] = []
    rows: list[FloatArray] = []
    widths: list[float] = []
    pooled: list[str] = []
    for feature in bounds.features:
        category = _category(feature)
        width = public_range(feature)[1]
        if category is None:
            row = np.zeros(intercept + 1)
            row[places[feature.name]] = 1.0
            # With its product with a category, the slope of a number is the slope at the reference.
            for term in bounds.features:
                if isinstance(term, Term) and term.category and _numbers(term) == _numbers(feature):
                    row += weights(term, chosen[term.category.name])
            names.append(feature.name)
            rows.append(row)
            widths.append(width)
            continue
        alone = isinstance(feature, Category) or any(
            _category(each) is None and _numbers(each) == _numbers(feature)
            for each in bounds.features
        )
        # Without its product of numbers, the first level of a term has no slope.
        reference = chosen[category.name] if alone else 0
        for level, name in enumerate(feature.columns(False)):
            if level == reference:
                continue
            unlisted = category.levels[level] == OTHER
            if known[category.name][level] < (LEAST_OTHER if unlisted else LEAST_COUNT) * noise:
                if not unlisted:
                    pooled.append(name)
                continue
            names.append(name)
            rows.append(weights(feature, level) - weights(feature, reference))
            widths.append(width)
    last = np.zeros(intercept + 1)
    last[-1] = 1.0
    last += sum(weights(each, chosen[each.name]) for each in categories)
    references = {each.name: each.levels[chosen[each.name]] for each in categories}
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


def table_effects(model: Any) -> Effects:
    """Return the effects of a model that was fitted to a table.

    Levels are compared with the most frequent level of their category where the fit released
    counts of levels, and with the first level otherwise.
    """
    schema, counts = model.schema_, getattr(model, "_level_counts", None)
    if counts is None:
        intercept = bool(model.fit_intercept)
        return column_effects(effects(model, schema.columns(intercept)), schema, intercept)
    made = contrasts(schema, counts, model._count_noise)
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
