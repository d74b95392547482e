"""Target codecs, which map targets to [-1, 1]: numbers inside bounds, or labels from a list.

A number counts as its place between public bounds. A label from a public list counts as the sign
of its class times a public weight. A label that is not in the list counts as absent: its target is
0, and it adds nothing to the objective, so neither an error nor the number of rows reveals it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.utils import column_or_1d

from fastmix._types import FloatArray
from fastmix._validation import check_real, type_error, value_error
from fastmix.data import LabelMap, Rows, TargetMap
from fastmix.data.scaling import PublicScaling
from fastmix.schema.categories import Categories
from fastmix.schema.values import as_reals, check_finite, label_places

Labels = npt.NDArray[Any]


def public_classes(classes: Any) -> Labels:
    """Return a public list of classes, sorted; at least two, all numbers or all text."""
    if isinstance(classes, (str, bytes, Mapping)) or not hasattr(classes, "__len__"):
        raise type_error("classes", "be a list of labels", classes)
    found = np.asarray(classes)
    kind = found.dtype.kind
    # NumPy makes text of numbers beside text.
    text = kind in "UO" and all(isinstance(each, str) for each in classes)
    if found.ndim != 1 or len(found) < 2 or not (text or kind in "biuf"):
        raise value_error("classes", "be at least two labels, all numbers or all text", classes)
    if kind == "f" and (not np.isfinite(found).all() or found.dtype.itemsize > 8):
        raise value_error("classes", "be finite and no long doubles", classes)
    # Large integers may be equal as floats, which labels are compared as.
    if len(np.unique(found if text else found.astype(np.float64))) < len(found):
        raise value_error("classes", "have no label twice", classes)
    return np.sort(found)


def public_weights(class_weight: Any, classes: Labels) -> FloatArray:
    """Return the weight of each class, 1 by default, divided by the largest weight."""
    if class_weight is None:
        return np.ones(len(classes))
    if not isinstance(class_weight, Mapping):
        condition = "be a dict of public weights by class, or None"
        raise type_error("class_weight", condition, class_weight)
    known = classes.tolist()
    unknown = [label for label in class_weight if label not in known]
    if unknown:
        raise value_error("class_weight", "name classes of the public list", class_weight)
    weights = np.array(
        [check_real("class_weight", class_weight.get(label, 1.0), above=0.0) for label in known]
    )
    return np.asarray(weights / weights.max())


def codes(y: Any, classes: Labels) -> npt.NDArray[np.int64]:
    """Return the place of each label in the list, -1 for other labels."""
    if classes.dtype.kind in "biuf":
        values = as_reals("y", y).astype(np.float64, copy=False)
        check_finite(values)
        return label_places(_one_axis(values), classes.astype(np.float64))
    if isinstance(y, np.ma.MaskedArray) and y.dtype.kind in "UO":
        y = np.ma.filled(y.astype(object), None)
    labels = _one_axis(_objects(y) if isinstance(y, (list, tuple)) else np.asarray(y))
    if labels.dtype.kind not in "UOT":
        raise ValueError(f"y must hold text, as classes do; got an array of {labels.dtype}.")
    places = {str(label): place for place, label in enumerate(classes)}
    return np.array(
        [places.get(each, -1) if isinstance(each, str) else -1 for each in labels.tolist()],
        dtype=np.int64,
    )


def _objects(y: Any) -> Labels:
    """Return a list as objects, None for numbers, which NumPy would convert to text."""
    labels = np.empty(len(y), dtype=object)
    labels[:] = [each if isinstance(each, str) else None for each in y]
    return labels


def _one_axis(y: Labels) -> Labels:
    """Return labels with one axis; a single column gets scikit-learn's warning."""
    if y.ndim not in (1, 2):
        raise ValueError(f"y should be a 1d array; got an array of shape {y.shape}.")
    return column_or_1d(y, warn=True)  # type: ignore[no-any-return]


class NumberCodec:
    """Targets that are numbers inside public bounds."""

    #: The parameter that gives the bounds or the labels of the target.
    ends: ClassVar[str] = "bounds_y"

    def check(self, *, coded: bool) -> None:
        """Do nothing: rows of any source can have numbers as targets."""

    def values(self, y: Any) -> FloatArray:
        """Return raw targets as finite numbers."""
        found = as_reals("y", y).astype(np.float64, copy=False)
        check_finite(found)
        return found

    def bounds(self, bounds_y: Any) -> Any:
        """Return the bounds of the values."""
        return bounds_y

    def scaling(self, made: PublicScaling, *, leaky: bool) -> PublicScaling:
        """Return the public scaling as it is."""
        return made

    def maps(self, scaling: PublicScaling, *, coded: bool) -> list[TargetMap | LabelMap]:
        """Return the map of targets to [-1, 1]."""
        return [scaling.target_map]


@dataclass(frozen=True, eq=False)
class LabelCodec:
    """Targets that are labels from a public list; more than two are one target per class.

    A source that is ``coded`` gives places in the list, -1 for other labels; any other source
    gives the labels themselves, which must be numbers.
    """

    classes: Labels
    weights: FloatArray

    ends: ClassVar[str] = "classes"

    def check(self, *, coded: bool) -> None:
        """Refuse text where labels must be numbers."""
        if not coded and self.classes.dtype.kind not in "biuf":
            condition = "be numbers for data not in memory, unless bounds list the labels"
            raise value_error("classes", condition, self.classes.tolist())

    def values(self, y: Any) -> FloatArray:
        """Return the places of raw labels in the list."""
        return codes(y, self.classes).astype(np.float64)

    def bounds(self, bounds_y: Any) -> Any:
        """Return bounds in which the values of two classes lie."""
        return 0.0, 1.0

    def scaling(self, made: PublicScaling, *, leaky: bool) -> PublicScaling:
        """Return the public scaling with the map of two labels; ``leaky`` labels are from data."""
        taken = (*made.from_data, "classes") if leaky else made.from_data
        first, second = self.weights[:2].tolist()
        unit = 1.0 / (first + second)
        return replace(made, target_map=TargetMap(0.0, 1.0, first * unit, unit), from_data=taken)

    def maps(self, scaling: PublicScaling, *, coded: bool) -> list[TargetMap | LabelMap]:
        """Return the map of labels to signed weights, for more than two classes one per class."""
        count = len(self.classes)
        known = np.arange(float(count)) if coded else self.classes.astype(np.float64)
        positive = [1] if count == 2 else range(count)
        return [LabelMap(known, self.weights, own) for own in positive]


Codec: TypeAlias = NumberCodec | LabelCodec


@dataclass(eq=False)
class ClassRows:
    """The same rows with one target per class, each against the rest."""

    targets: tuple[Rows, ...]

    @property
    def categories(self) -> Categories | None:
        """The columns of the categories, which all classes share."""
        return self.targets[0].categories

    @categories.setter
    def categories(self, value: Categories | None) -> None:
        for rows in self.targets:
            rows.categories = value

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.targets[0].n

    @property
    def most(self) -> int:
        """The number that the rows are at most, where n is released."""
        return self.targets[0].most

    @property
    def d(self) -> int:
        """The number of coefficients of all classes."""
        return sum(rows.d for rows in self.targets)

    def counted(self, n: int, most: int | None = None) -> "ClassRows":
        """Return the same rows as if they were n, a released number."""
        return ClassRows(tuple(rows.counted(n, most) for rows in self.targets))
