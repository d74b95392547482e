"""Fits of tables by public bounds: the part of the estimators that knows columns by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fastmix._types import FloatArray
from fastmix._validation import value_error
from fastmix.accounting import noted
from fastmix.data.chunks import Executor
from fastmix.estimators._input import ArrayInput, ChunkInput, Input
from fastmix.tables import PublicBounds, encode, table_chunks
from fastmix.tables.encode import table_columns
from fastmix.tables.frames import frame_columns, frame_length, frame_names, public_bounds

if TYPE_CHECKING:
    from fastmix.estimators.base import PrivateRegressor


class TableInput(ArrayInput):
    """A table in memory, which is encoded when the budget has been asked."""

    def __init__(self, X: Any, y: Any, public: PublicBounds, intercept: bool) -> None:
        super().__init__(X, y)
        self._public, self._intercept = public, intercept

    @property
    def shape(self) -> tuple[int, int] | None:
        """Rows and encoded columns; None if rows are dropped, so that their number is not known."""
        n, d = frame_length(self.X), len(self._public.columns(self._intercept))
        return (n, d) if n and self._public.missing == "impute" else None

    def check(self, model: PrivateRegressor) -> int:
        """Encode the table, and return the number of columns."""
        columns = frame_columns(self.X, self._public, self.y)
        self.X, self.y = encode(columns, self._public, intercept=self._intercept)
        d = super().check(model)
        self.names = np.asarray(self._public.columns(self._intercept), dtype=object)
        return d


def fit_table(model: PrivateRegressor, X: Any, y: Any) -> Any:
    """Fit a table in memory by the model's bounds."""
    names = frame_names(X)
    name = getattr(y, "name", None)
    target = name if isinstance(name, str) and name else None
    public = public_bounds(model.bounds, names, target=target, bounds_y=model.bounds_y)
    return _fit_bounded(model, TableInput(X, y, public, bool(model.fit_intercept)), public)


def fit_files(model: PrivateRegressor, path: Any, executor: Executor | None) -> Any:
    """Fit files by the model's bounds, in chunks."""
    if not isinstance(path, (str, Path)):
        raise value_error("path", "be one file or folder when bounds are given", path)
    names = table_columns(Path(path))
    public = public_bounds(model.bounds, names, bounds_y=model.bounds_y)
    table = table_chunks(Path(path), public, intercept=bool(model.fit_intercept), executor=executor)
    return _fit_bounded(model, ChunkInput(table), public)


def _fit_bounded(model: PrivateRegressor, data: Input, public: PublicBounds) -> Any:
    """Fit encoded columns with the bounds that follow; the model's parameters stay as they are."""
    for name in ("bounds_X", "data_norm"):
        if getattr(model, name) is not None:
            raise value_error(name, "be None when bounds are given", getattr(model, name))
    bound = object.__new__(type(model))
    bound.__dict__.update(model.__dict__)
    given = {name: getattr(model, name) for name in ("bounds", "bounds_X", "bounds_y", "data_norm")}
    bound.bounds = None
    bound.bounds_X = public.feature_bounds(bool(model.fit_intercept))
    bound.bounds_y = (public.target.lower, public.target.upper)
    bound.data_norm = public.data_norm
    with noted(target=public.target.name):
        bound._fit(data)
    facts = {**bound.privacy_.data, "missing": public.missing, "encoding": public.to_dict()}
    bound.privacy_ = replace(bound.privacy_, data=facts)
    bound.schema_ = public
    model.__dict__ = {**bound.__dict__, **given}
    return model


def encoded(model: PrivateRegressor, X: Any) -> FloatArray:
    """Return the columns of a table as the model's fit encoded them."""
    columns = frame_columns(X, model.schema_, target=False)
    return encode(columns, model.schema_, intercept=bool(model.fit_intercept), target=False)[0]
