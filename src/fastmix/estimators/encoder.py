"""A transformer for pipelines that encodes a table by public bounds alone."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from fastmix._types import FloatArray
from fastmix._validation import check_bool, unchained
from fastmix.data.encode import encode
from fastmix.data.frames import frame_columns, frame_names, public_bounds
from fastmix.estimators._found import BoundsRelease, FoundBounds, FoundNorm
from fastmix.schema import PublicBounds


class PublicEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Clip, impute and one-hot encode a table by public bounds, for pipelines.

    `fit` reads only the names of the columns, so the encoder learns nothing from values and costs
    no privacy. A pipeline of an encoder and a private regressor is as private as the regressor.

    Parameters
    ----------
    bounds : path, dict, data frame or PublicBounds
        Bounds file, or the same in Python; docs/bounds.md. The target may be left out.
    drop_first : bool, default=True
        Leave out the first category of each list, as beside an intercept.

    Attributes
    ----------
    schema_ : PublicBounds
        The bounds, with patterns written out.
    bounds_X_ : tuple of ndarray
        Lower and upper bounds of the encoded columns, for a regressor's ``bounds_X``.
    data_norm_ : float
        Longest encoded row, for a regressor's ``data_norm``.
    n_features_in_ : int
        Number of columns of the table.
    feature_names_in_ : ndarray
        Names of the columns of the table.

    Notes
    -----
    The number of rows stays the same: missing values are imputed, whatever the rule says.

    Examples
    --------
    >>> import pandas as pd
    >>> from fastmix import PublicEncoder
    >>> table = pd.DataFrame({"age": [30, None, 150], "city": ["Ulm", "Bonn", "Rom"]})
    >>> encoder = PublicEncoder(bounds={"age": (0, 120), "city": ["Ulm", "Bonn"]})
    >>> encoder.set_output(transform="pandas").fit_transform(table).round(1).values.tolist()
    [[30.0, 0.0, 0.0], [60.0, 1.0, 0.0], [120.0, 0.0, 1.0]]
    """

    def __init__(self, bounds: Any = None, *, drop_first: bool = True) -> None:
        self.bounds = bounds
        self.drop_first = drop_first

    def fit(self, X: Any, y: Any = None) -> "PublicEncoder":
        """Match the bounds with the names of the columns; values are not read.

        Parameters
        ----------
        X : pandas, Polars or Arrow table
            The table.
        y : object, default=None
            Ignored, but for its name.

        Returns
        -------
        self : object
            The encoder.
        """
        check_bool("drop_first", self.drop_first)
        names = frame_names(X)
        self.schema_: PublicBounds = public_bounds(
            self.bounds, names, target=_free(names), ends=_UNUSED if self._flat() else None
        )
        self.bounds_X_ = self.schema_.feature_bounds(self.drop_first)
        self.data_norm_ = self.schema_.data_norm
        if (found := self.schema_.found) is not None:
            release = BoundsRelease(
                found.epsilon, found.delta, found.rows_per_person, found.certificate
            )
            self.bounds_X_ = FoundBounds(*self.bounds_X_, release)
            self.data_norm_ = FoundNorm(self.data_norm_, release)
        self.n_features_in_ = len(names)
        self.feature_names_in_ = np.asarray(names, dtype=object)
        return self

    def transform(self, X: Any) -> FloatArray:
        """Encode the rows of a table.

        Parameters
        ----------
        X : pandas, Polars or Arrow table
            The table, with its columns in any order.

        Returns
        -------
        ndarray of shape (n_samples, n_encoded_columns)
            Clipped numbers, zeros and ones for categories, and terms.
        """
        check_is_fitted(self)
        with unchained():
            columns = frame_columns(X, self.schema_, target=False)
        return encode(columns, self.schema_, intercept=self.drop_first, target=False)[0]

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Return the names of the encoded columns.

        Parameters
        ----------
        input_features : object, default=None
            Ignored.

        Returns
        -------
        ndarray of str
            One name per encoded column.
        """
        check_is_fitted(self)
        return np.asarray(self.schema_.columns(self.drop_first), dtype=object)

    def _flat(self) -> bool:
        """Tell whether the bounds have entries for features only."""
        if isinstance(self.bounds, dict):
            return not isinstance(self.bounds.get("features"), dict)
        rows = hasattr(self.bounds, "columns") and not isinstance(self.bounds, PublicBounds)
        return rows and "role" not in list(self.bounds.columns)


#: Bounds of the target, which the encoder does not use.
_UNUSED = (0.0, 1.0)


def _free(names: list[str]) -> str:
    """Return a name that no column has."""
    name = "target"
    while name in names:
        name += "_"
    return name
