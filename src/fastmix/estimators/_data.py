"""What a fit is given: arrays in memory, or a table in chunks.

Both know their shape before a value is read, are checked by a model, and become rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from sklearn.utils.validation import _num_features, _num_samples, validate_data

from fastmix._validation import value_error
from fastmix.estimators._scaling import PublicScaling, public_scaling
from fastmix.rows import ArrayChunk, ArrayRows, ChunkRows, Chunks, Report, Rows

if TYPE_CHECKING:
    from fastmix.estimators._base import PrivateRegressor

__all__ = ["Arrays", "Data", "Table"]


class Arrays:
    """Records and targets as arrays, or as anything that scikit-learn makes arrays of.

    A memory map of a file is read in blocks where the method can do with that.
    """

    def __init__(self, X: Any, y: Any) -> None:
        self.X, self.y = X, y
        self._mapped = isinstance(X, np.memmap)

    @property
    def shape(self) -> tuple[int, int] | None:
        """Rows and features without reading a value; None leaves the complaint to `check`."""
        try:
            n, d = _num_samples(self.X), _num_features(self.X)
        except (TypeError, ValueError):
            return None
        return (n, d) if n >= 1 and d >= 1 else None

    def check(self, model: PrivateRegressor) -> None:
        """Check what can be checked without a pass over the values, and note the features."""
        try:
            self.X, y = validate_data(
                model,
                self.X,
                self.y,
                dtype=[np.float64, np.float32],
                y_numeric=True,
                multi_output=False,
                # Rows are checked where their norms are taken, which spares a pass.
                ensure_all_finite=False,
            )
            self.y = np.asarray(y, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise type(error)(_without_data(str(error))) from None

    def scaling(self, **parameters: Any) -> PublicScaling:
        """Return the public scaling; bounds that are missing are taken from the data."""
        return public_scaling(self.X, self.y, **parameters)

    def rows(self, scaling: PublicScaling, report: Report, *, in_blocks: bool) -> Rows:
        """Return the records as rows of norm at most 1."""
        if self._mapped and in_blocks:
            table = Chunks([ArrayChunk("X", self.X, self.y)], self.X.shape[1])
            return ChunkRows(table, scaling.row_map, scaling.target_map, report)
        return ArrayRows(self.X, scaling.row_map, self.y, scaling.target_map)


class Table:
    """A table in chunks."""

    def __init__(self, chunks: Chunks) -> None:
        self._chunks = chunks

    @property
    def shape(self) -> tuple[int, int] | None:
        """Rows and features without reading a value; None if they are not known."""
        n = self._chunks.n
        return (n, self._chunks.d) if n else None

    def check(self, model: PrivateRegressor) -> None:
        """Note the features; values are checked when the rows are made."""
        model.n_features_in_ = self._chunks.d
        if self._chunks.names is None:
            model.__dict__.pop("feature_names_in_", None)
        else:
            model.feature_names_in_ = np.asarray(self._chunks.names, dtype=object)

    def scaling(self, **parameters: Any) -> PublicScaling:
        """Return the public scaling; bounds must be given."""
        if parameters["bounds_X"] is None and parameters["data_norm"] is None:
            raise value_error("bounds_X", "be given for data that are not in memory", None)
        if parameters["bounds_y"] is None:
            raise value_error("bounds_y", "be given for data that are not in memory", None)
        return public_scaling(np.empty((0, self._chunks.d)), np.empty(0), **parameters)

    def rows(self, scaling: PublicScaling, report: Report, *, in_blocks: bool) -> Rows:
        """Return the records as rows of norm at most 1; reads all of them once."""
        if not in_blocks:
            raise ValueError(
                "this method needs its data in memory: use engine='auto', and of the fast "
                "sketches 'kerdock'."
            )
        return ChunkRows(self._chunks, scaling.row_map, scaling.target_map, report)


Data: TypeAlias = Arrays | Table


def _without_data(message: str) -> str:
    """Return a message of the validation without the values that it quotes."""
    if "could not convert" in message:
        return "X and y must hold numbers; got text."
    first, *rest = message.splitlines() or [""]
    advice = [line for line in rest if line.startswith("Reshape your data")]
    return " ".join([first, *advice])
