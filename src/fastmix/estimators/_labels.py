"""Labels from a public list of classes, as targets.

A label counts as the sign of its class times a public weight.  A label that is not in the list
counts as absent: its target is 0, and it adds nothing to the objective, so that neither an error
nor the number of rows tells of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import column_or_1d

from fastmix._types import FloatArray
from fastmix._validation import check_real, type_error, value_error
from fastmix.data import ArrayRows, LabelMap, Report, Rows, TargetMap
from fastmix.data.scaling import PublicScaling
from fastmix.estimators._input import ArrayInput, ChunkInput
from fastmix.schema.values import as_reals, check_finite, label_places

if TYPE_CHECKING:
    from fastmix.estimators.base import PrivateModel

Labels = npt.NDArray[Any]


def public_classes(classes: Any) -> Labels:
    """Return a public list of classes, sorted; at least two, all numbers or all text."""
    if isinstance(classes, (str, bytes, Mapping)) or not hasattr(classes, "__len__"):
        raise type_error("classes", "be a list of labels", classes)
    found = np.asarray(classes)
    if found.ndim != 1 or found.dtype.kind not in "biufUO" or len(found) < 2:
        raise value_error("classes", "be at least two labels, all numbers or all text", classes)
    if found.dtype.kind == "O" and not all(isinstance(each, str) for each in found):
        raise value_error("classes", "be at least two labels, all numbers or all text", classes)
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        raise value_error("classes", "be finite", classes)
    if found.dtype.kind == "U" and not all(isinstance(each, str) for each in classes):
        raise value_error("classes", "be at least two labels, all numbers or all text", classes)
    if len(np.unique(found)) < len(found):
        raise value_error("classes", "have no label twice", classes)
    return np.sort(found)


def public_weights(class_weight: Any, classes: Labels) -> FloatArray:
    """Return the weight of each class over the largest; 1 for classes that are not named."""
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
    """Return the place of each label in the list, -1 for labels that are not in it."""
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
    """Return a list as objects; NumPy would make text of the numbers in it beside one text."""
    labels = np.empty(len(y), dtype=object)
    labels[:] = [each if isinstance(each, str) else None for each in y]
    return labels


def _one_axis(y: Labels) -> Labels:
    """Return labels with one axis; a single column gets scikit-learn's warning."""
    if y.ndim not in (1, 2):
        raise ValueError(f"y should be a 1d array; got an array of shape {y.shape}.")
    return column_or_1d(y, warn=True)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class ClassRows:
    """The same rows with a target for each class, against the rest."""

    targets: tuple[Rows, ...]

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.targets[0].n

    @property
    def d(self) -> int:
        """The number of coefficients of all classes."""
        return sum(rows.d for rows in self.targets)


def _target_map(low: float, high: float, weights: FloatArray) -> TargetMap:
    """Return the map of two labels to minus the weight of one and the weight of the other."""
    total = float(weights.sum())
    return TargetMap(
        low, high, low + (high - low) * float(weights[0]) / total, (high - low) / total
    )


def _check_persons(grouped: bool, classes: Labels) -> None:
    """Refuse persons with more than two classes, whose rows do not carry their weights."""
    if grouped and len(classes) > 2:
        raise ValueError(
            "groups must not be given with more than two classes: such fits protect single rows. "
            "Fit each label against the others as two classes, and share the budget among them."
        )


class LabelInput(ArrayInput):
    """Records as arrays, with labels."""

    def check(self, model: PrivateModel) -> int:
        """Convert the data, labels to numbers, and return the number of features."""
        if self.y is not None:
            self._classes, self._weights = model._labels()
            _check_persons(self._groups is not None, self._classes)
            self._codes = codes(self.y, self._classes)
            absent = _target_map(0.0, 1.0, self._weights[:2]).center
            self.y = np.where(self._codes >= 0, self._codes, absent).astype(np.float64)
        return super().check(model)

    def scaling(self, **parameters: Any) -> PublicScaling:
        """Return the public scaling, with the map of labels to signed weights."""
        leaky = parameters.pop("bounds_y")
        made = super().scaling(bounds_y=(0.0, 1.0), **parameters)
        taken = (*made.from_data, "classes") if leaky is None else made.from_data
        target_map = _target_map(0.0, 1.0, self._weights[:2])
        return replace(made, target_map=target_map, from_data=taken)

    def rows(self, scaling: PublicScaling, report: Report, *, in_blocks: bool) -> Any:
        """Return the records as rows, for more than two classes with a target for each."""
        if len(self._classes) == 2:
            return super().rows(scaling, report, in_blocks=in_blocks)
        sizes = np.where(self._codes >= 0, self._weights[self._codes], 0.0)
        targets = (np.where(self._codes == k, sizes, -sizes) for k in range(len(self._classes)))
        with self._one_message():
            return ClassRows(
                tuple(ArrayRows(self.X, scaling.row_map, y, TargetMap()) for y in targets)
            )


class LabelChunks(ChunkInput):
    """A table in chunks, with labels that are numbers or places in the list of classes."""

    def check(self, model: PrivateModel) -> int:
        """Return the number of features; values are checked when the rows are made."""
        self._classes, self._weights = model._labels()
        _check_persons(self._chunks.grouped, self._classes)
        if self._chunks.coded:
            self._known = np.arange(float(len(self._classes)))
        elif self._classes.dtype.kind in "biuf":
            self._known = self._classes.astype(np.float64)
        else:
            condition = "be numbers for data not in memory, unless bounds list the labels"
            raise value_error("classes", condition, self._classes.tolist())
        return super().check(model)

    def scaling(self, **parameters: Any) -> PublicScaling:
        """Return the public scaling; labels have a map of their own."""
        if parameters.pop("bounds_y") is None:
            raise value_error("classes", "be given for data that are not in memory", None)
        made = super().scaling(bounds_y=(0.0, 1.0), **parameters)
        return replace(made, target_map=_target_map(0.0, 1.0, self._weights[:2]))

    def rows(self, scaling: PublicScaling, report: Report, *, in_blocks: bool) -> Any:
        """Return the records as rows, for more than two classes with a target for each."""
        maps = [LabelMap(self._known, self._weights, own) for own in range(len(self._known))]
        made = self._rows(scaling.row_map, maps[1], report, in_blocks)
        if len(maps) == 2:
            return made
        return ClassRows(tuple(made.with_targets(each) for each in maps))
