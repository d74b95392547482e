"""Fits of tables with named columns by public bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fastmix._types import FloatArray
from fastmix._validation import type_error, value_error
from fastmix.accounting import noted
from fastmix.data.arrow import table_files
from fastmix.data.chunks import Executor
from fastmix.data.columns import Columns
from fastmix.data.delimited import TextFormat
from fastmix.data.encode import complete, encode, needed, table_chunks, table_columns
from fastmix.data.frames import (
    encoded_array,
    frame_columns,
    frame_length,
    frame_names,
    public_bounds,
)
from fastmix.data.read import read_columns
from fastmix.data.streams import is_stream, stream_of
from fastmix.estimators._input import Arrays, InChunks, Source
from fastmix.schema import PublicBounds
from fastmix.schema.bounds import check_number, check_persons
from fastmix.schema.features import Labels

if TYPE_CHECKING:
    from fastmix.estimators.models import PrivateModel


class FrameSource(Arrays):
    """A table in memory, which is encoded after the budget was checked."""

    def __init__(
        self, public: PublicBounds, intercept: bool, X: Any, y: Any, groups: Any, weights: Any
    ) -> None:
        super().__init__(X, y, groups, weights)
        self._public, self._intercept = public, intercept
        self._coded = isinstance(public.target, Labels)

    @property
    def shape(self) -> tuple[int, int] | None:
        """Rows and encoded columns; None if rows are dropped, so that their number is not known."""
        if self._groups is not None:  # persons are counted first
            return None
        n, d = frame_length(self.X), len(self._public.columns(self._intercept))
        return (n, d) if n and self._public.missing == "impute" else None

    def _length(self) -> int:
        return int(frame_length(self.X))

    def _check_axes(self) -> None:
        """Do nothing: a table has columns."""

    def check(self, model: PrivateModel) -> int:
        """Encode the table, and return the number of columns."""
        columns = frame_columns(self.X, self._public, self.y)
        self.X, self.y = encode(columns, self._public, intercept=self._intercept)
        if self._public.missing == "drop":
            kept = complete(columns, self._public)
            self._groups = _kept("groups", self._groups, kept)
            self._weights = _kept("sample_weight", self._weights, kept)
        d = super().check(model)
        self.names = np.asarray(self._public.columns(self._intercept), dtype=object)
        return d


def _kept(name: str, values: Any, kept: Any) -> Any:
    """Return the ids or weights of the rows that are not dropped; None if there are none."""
    if values is None:
        return None
    if len(values) != len(kept):
        raise value_error(name, f"have {len(kept)} entries, as X has rows", len(values))
    if isinstance(values, (list, tuple)):  # NumPy would make text of numbers beside text
        return [each for each, stays in zip(values, kept, strict=True) if stays]
    return np.asarray(values)[kept]


def fit_table(model: PrivateModel, X: Any, y: Any, groups: Any = None, weights: Any = None) -> Any:
    """Fit a table in memory by the model's bounds."""
    if is_stream(X):
        return _fit_stream(model, X, y, groups, weights)
    others = {getattr(groups, "name", None), getattr(weights, "name", None)}
    names = [name for name in frame_names(X) if name not in others]
    name = getattr(y, "name", None)
    target = name if isinstance(name, str) and name else None
    public = _public(model, names, target, persons=groups is not None)
    source = FrameSource(public, bool(model.fit_intercept), X, y, groups, weights)
    return _fit_bounded(model, source, public)


def _fit_stream(model: PrivateModel, X: Any, y: Any, groups: Any, weights: Any) -> Any:
    """Fit the records of an Arrow stream, whose target, ids and weights are columns of it."""
    for name, given in (("y", y), ("groups", groups), ("sample_weight", weights)):
        if not (given is None or isinstance(given, str)):
            raise type_error(name, "be the name of a column of the stream, or None", type(given))
    stream = stream_of(X)
    names = [name for name in table_columns(stream) if name not in (groups, weights)]
    public = _public(model, names, y, persons=groups is not None)
    table = table_chunks(
        stream, public, intercept=bool(model.fit_intercept), person=groups, weight=weights
    )
    return _fit_bounded(model, InChunks(table), public)


def fit_files(
    model: PrivateModel,
    path: Any,
    executor: Executor | None,
    target: str,
    features: Sequence[str] | None,
    groups: str | None,
    weight: str | None = None,
) -> Any:
    """Fit files by the model's bounds, in chunks."""
    if not isinstance(path, (str, Path)):
        raise value_error("path", "be one file or folder when bounds are given", path)
    table_files(path)  # refuses what is no file
    names = [name for name in table_columns(Path(path)) if name not in (groups, weight)]
    public = _public(model, names, target, persons=groups is not None)
    if target not in ("y", public.target.name):
        raise value_error("target", f"be that of the bounds, {public.target.name!r}", target)
    if features is not None:
        public = public.select(features)
    table = table_chunks(
        Path(path),
        public,
        intercept=bool(model.fit_intercept),
        executor=executor,
        person=groups,
        weight=weight,
    )
    return _fit_bounded(model, InChunks(table), public)


def _public(
    model: PrivateModel, names: Sequence[str], target: str | None, *, persons: bool
) -> PublicBounds:
    """Return the bounds of a table; bounds_y or classes may give the bounds of its target."""
    for name in ("bounds_X", "data_norm"):
        if getattr(model, name) is not None:
            raise value_error(name, "be None when bounds are given", getattr(model, name))
    ends = getattr(model, model._ends)
    public = public_bounds(model.bounds, names, target=target, ends=ends, called=model._ends)
    check_persons(public, persons, bool(model.public_rows))
    if model._ends != "classes":
        check_number(public)
    return public


def _fit_bounded(model: PrivateModel, data: Source, public: PublicBounds) -> Any:
    """Fit encoded columns with their bounds, and leave the parameters of the model unchanged."""
    bound = object.__new__(type(model))
    bound.__dict__.update(model.__dict__)
    parameters = ("bounds", "bounds_X", "data_norm", model._ends)
    given = {name: getattr(model, name) for name in parameters}
    bound.bounds = None
    bound.bounds_X = public.feature_bounds(bool(model.fit_intercept))
    bound.data_norm = public.data_norm
    setattr(bound, model._ends, public.ends)
    bound._categories = public.categories() if model.fit_intercept else ()
    bound._unlisted = public.unlisted() if model.fit_intercept else ()
    bound._given = ()  # no pipeline in front has made these columns
    with noted(target=public.target.name):
        bound._fit(data)
    facts = {**bound.privacy_.data, "missing": public.missing, "encoding": public.to_dict()}
    facts["categories"] = [len(columns) for columns in bound._categories]
    bound.privacy_ = replace(bound.privacy_, data=facts)
    bound.schema_ = public
    # Columns of the next fit may be others: counts of levels of these would have no bound.
    del bound._categories, bound._unlisted
    model.__dict__ = {**bound.__dict__, **given}
    return model


def encoded(model: PrivateModel, X: Any) -> FloatArray:
    """Return the rows of a table as the model's fit encoded them; an array is encoded already."""
    if isinstance(X, np.ndarray):
        return encoded_array(X, model.n_features_in_)
    schema = model.schema_
    if is_stream(X):
        columns = read_columns(stream_of(X), *needed(schema, target=False), TextFormat().of(schema))
    else:
        columns = X if isinstance(X, Columns) else frame_columns(X, schema, target=False)
    return encode(columns, schema, intercept=bool(model.fit_intercept), target=False)[0]
