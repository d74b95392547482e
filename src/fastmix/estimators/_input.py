"""Sources of a fit: arrays in memory, or a table in chunks.

A source knows its shape before it reads a value. A fit checks the source before anything is
charged, and reads it as rows, whose targets the codec of the model maps to [-1, 1].
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from sklearn.utils import check_array, check_X_y, validation

from fastmix._validation import value_error
from fastmix.data import ArrayChunk, ArrayRows, ChunkRows, Chunks, Report
from fastmix.data.kept import decoded_once
from fastmix.data.persons import Persons, counted_weights, hash_ids, new_key
from fastmix.data.scaling import PublicScaling, public_scaling
from fastmix.data.weights import checked_weights, row_weights
from fastmix.engine.population import Population
from fastmix.errors import DataError, InvalidValueError
from fastmix.estimators._labels import ClassRows, Codec, NumberCodec
from fastmix.schema.values import as_reals, check_finite, column_labels, object_columns

if TYPE_CHECKING:
    from fastmix.estimators.models import PrivateModel


class Arrays:
    """Records and targets as arrays, or as anything that converts to arrays of numbers.

    The data are converted once, and the fit uses exactly what was checked. A memory map of a file
    is read in blocks if the method can work in blocks.
    """

    _codec: Codec = NumberCodec()
    #: Whether targets are places in a list of labels already.
    _coded = False

    def __init__(self, X: Any, y: Any, groups: Any = None, weights: Any = None) -> None:
        self.X, self.y, self._groups, self._weights = X, y, groups, weights
        self._persons: Persons | None = None
        self.table_rows: int | None = None
        self._mapped = isinstance(X, np.memmap)
        self.names: Any = None
        self._labels: list[Any] | None = None
        self._objects: list[Any] = []

    @property
    def shape(self) -> tuple[int, int] | None:
        """Rows and features without reading a value; None if `check` will raise."""
        if self._groups is not None:  # persons are counted first
            return None
        try:
            n, d = validation._num_samples(self.X), validation._num_features(self.X)
        except Exception:
            return None
        return (n, d) if n >= 1 and d >= 1 else None

    @property
    def columns(self) -> tuple[int, list[Any] | None] | None:
        """Number of columns of X and their labels, if any; None if `check` will raise."""
        try:
            return validation._num_features(self.X), column_labels(self.X)
        except Exception:
            return None

    def check_shapes(self) -> None:
        """Refuse parts of different lengths, without revealing the number of rows."""
        n = self._length()
        parts = {"y": self.y, "groups": self._groups, "sample_weight": self._weights}
        for name, values in parts.items():
            if values is not None and validation._num_samples(values) != n:
                raise ValueError(f"{name} must have one entry per row of X.")
        self._check_axes()
        if self.y is not None and _shape(self.y)[1:] not in ((), (1,)):
            raise ValueError("y must have one axis.")

    def _length(self) -> int:
        """Return the number of rows of X."""
        return int(validation._num_samples(self.X))

    def _check_axes(self) -> None:
        """Refuse anything but a table with columns as X."""
        shape = _shape(self.X)
        if len(shape) != 2:
            raise ValueError("X must have two axes, rows and columns.")
        if not shape[1]:
            raise ValueError("X must have at least one column.")

    def check(self, model: PrivateModel) -> int:
        """Convert the data, check what needs no pass over X, and return the number of features."""
        name = type(model).__name__
        if self.y is None:
            raise ValueError(f"{name} requires y to be passed, but the target y is None.")
        self._codec = model._codec()
        self._codec.check(coded=True)
        self.names, self._labels = validation._get_feature_names(self.X), column_labels(self.X)
        self._objects = [*object_columns(self.X), *object_columns(self.y)]
        with self._one_message():
            X = as_reals("X", self.X)
            y = self.y if self._coded else self._codec.values(self.y)
        # Rows of X are checked where their norms are taken, which spares a pass.
        self.X, self.y = check_X_y(
            _two_axes(X),
            y,
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
            ensure_min_samples=1 if model.public_rows else 0,
            estimator=name,
        )
        if self._groups is not None or self._weights is not None:
            self._weigh(model._population)
        return int(self.X.shape[1])

    def _weigh(self, population: Population) -> None:
        """Find the weights of the rows, and leave out rows that do not count."""
        key, n = new_key(), len(self.X)
        hashed, weights = None, None
        self.table_rows = n
        if self._weights is not None:
            weights = checked_weights(self._weights)
            if len(weights) != n:
                raise value_error("sample_weight", f"have {n} entries, as X has rows", len(weights))
            weights = row_weights(weights, population.max_weight or 1.0)
        if self._groups is not None:
            hashed = [hash_ids(self._groups, key)]
            found = len(hashed[0].hashes)
            if found != n:
                raise value_error("groups", f"have {n} entries, as X has rows", found)
        persons = counted_weights(n, hashed, population.rows_per_person, weights, key)
        kept = persons.weights > 0.0
        kept[:1] |= not kept.any()
        if not kept.all():
            with self._one_message():
                check_finite(self.X)  # all of them, so that no choice of rows decides on an error
            self.X, self.y = self.X[kept], self.y[kept]
            self._mapped = False
        self._persons = persons.of_rows(kept)

    def chosen(self, columns: list[int]) -> Arrays:
        """Return the same checked records with some of their columns."""
        part = copy(self)
        part.X, part.names, part._labels = self.X[:, columns], None, None
        return part

    def scaling(self, *, bounds_y: Any, **parameters: Any) -> PublicScaling:
        """Return the public scaling; bounds that are missing are taken from the data."""
        parameters |= {"bounds_y": self._codec.bounds(bounds_y), "labels": self._labels}
        with self._one_message():
            made = public_scaling(self.X, self.y, **parameters)
        return self._codec.scaling(made, leaky=bounds_y is None)

    def rows(self, scaling: PublicScaling, report: Report, *, in_blocks: bool) -> Any:
        """Return the records as rows of norm at most 1."""
        maps = self._codec.maps(scaling, coded=True)
        with self._one_message():
            if self._mapped and in_blocks and self._persons is None:
                table = Chunks([ArrayChunk("X", self.X, self.y)], self.X.shape[1])
                first = ChunkRows(table, scaling.row_map, maps[0], report)
                return _by_class([first, *map(first.with_targets, maps[1:])])
            return _by_class(
                [
                    ArrayRows(self.X, scaling.row_map, self.y, each, persons=self._persons)
                    for each in maps
                ]
            )

    @contextmanager
    def _one_message(self) -> Iterator[None]:
        """Name all columns of objects in the error for a bad value, whichever column has it."""
        try:
            yield
        except InvalidValueError as error:
            if self._objects:
                names = ", ".join(map(repr, self._objects))
                error.args = (f"{error.MESSAGE} Columns of type object: {names}.",)
            raise


class InChunks:
    """A table in chunks."""

    def __init__(self, chunks: Chunks) -> None:
        self._chunks = chunks
        self.table_rows: int | None = None
        self.names = None if chunks.names is None else np.asarray(chunks.names, dtype=object)

    @property
    def shape(self) -> tuple[int, int] | None:
        """Rows and features without reading a value; None if they are not known."""
        n = None if self._chunks.grouped else self._chunks.n  # persons are counted first
        return (n, self._chunks.d) if n else None

    @property
    def columns(self) -> tuple[int, list[Any] | None]:
        """Number of features and their labels, if any."""
        labels = self._chunks.names or self._chunks.labels
        return self._chunks.d, None if labels is None else list(labels)

    def check_shapes(self) -> None:
        """Do nothing: chunks are checked when they are read."""

    def check(self, model: PrivateModel) -> int:
        """Return the number of features; values are checked when the rows are made."""
        table, self._codec = self._chunks, model._codec()
        self._codec.check(coded=table.coded)
        self._most_rows = model._population.rows_per_person if table.grouped else None
        self._most_weight = model._population.max_weight if table.weighted else None
        self._least_rows = 1 if model.public_rows else 0
        return table.d

    def scaling(self, *, bounds_y: Any, **parameters: Any) -> PublicScaling:
        """Return the public scaling; bounds must be given."""
        if parameters["bounds_X"] is None and parameters["data_norm"] is None:
            raise value_error("bounds_X", "be given for data that are not in memory", None)
        if bounds_y is None:
            raise value_error(self._codec.ends, "be given for data that are not in memory", None)
        empty = np.empty((0, self._chunks.d)), np.empty(0)
        labels = self._chunks.names or self._chunks.labels
        parameters |= {"bounds_y": self._codec.bounds(bounds_y), "labels": labels}
        return self._codec.scaling(public_scaling(*empty, **parameters), leaky=False)

    def rows(self, scaling: PublicScaling, report: Report, *, in_blocks: bool) -> Any:
        """Return the records as rows of norm at most 1; reads all of them once."""
        if not in_blocks:
            raise ValueError(
                "this method needs its data in memory: use literal=False, and 'sparse' or "
                "'kerdock' as the fast sketch."
            )
        first, *others = self._codec.maps(scaling, coded=self._chunks.coded)
        limits = self._most_rows, self._most_weight
        table = decoded_once(self._chunks)
        rows = ChunkRows(table, scaling.row_map, first, report, *limits)
        if rows.table_rows < self._least_rows:
            raise DataError("the data must have at least one row to fit.")
        self.table_rows = rows.table_rows
        return _by_class([rows, *map(rows.with_targets, others)])


Source: TypeAlias = Arrays | InChunks


def _by_class(targets: list[Any]) -> Any:
    """Return the rows, or the rows of all classes together."""
    return targets[0] if len(targets) == 1 else ClassRows(tuple(targets))


def features_to_predict(model: PrivateModel, X: Any) -> Any:
    """Return features as an array of finite numbers, with the columns of the fit."""
    validation._check_feature_names(model, X, reset=False)
    X = _two_axes(as_reals("X", X))
    X = check_array(X, dtype=[np.float64, np.float32], ensure_all_finite=False)
    validation._check_n_features(model, X, reset=False)
    check_finite(X)
    return X


def _shape(value: Any) -> tuple[int, ...]:
    """Return the shape of data; rows of different lengths give the error of any bad value."""
    try:
        return np.shape(value)
    except ValueError:
        pass  # and raise outside, so that the error does not carry one that tells the shape
    raise InvalidValueError


def _two_axes(X: Any) -> Any:
    """Refuse arrays without two axes; scikit-learn's own message would quote values."""
    if X.ndim != 2:
        raise ValueError(
            f"X must have two axes, rows and columns; got an array of shape {X.shape}. Reshape "
            "your data: X.reshape(-1, 1) is one column."
        )
    return X
