"""What a loader returns: a regression problem with public bounds and its provenance."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from fastmix._validation import check_integer
from fastmix.random import RandomState, public_generator

__all__ = ["Table"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """A regression problem with public bounds.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        Features.
    y : ndarray of shape (n,)
        Target.
    feature_names : tuple of str
        Names of the features.
    target_name : str
        Name of the target.
    bounds_X : tuple of ndarray
        Public lower and upper bounds of the features.
    bounds_y : tuple of float
        Public bounds of the target.
    provenance : str
        Where the data come from and what was done to them.
    """

    X: FloatArray
    y: FloatArray
    feature_names: tuple[str, ...]
    target_name: str
    bounds_X: tuple[FloatArray, FloatArray]
    bounds_y: tuple[float, float]
    provenance: str

    def subsample(self, n: int, random_state: RandomState = None) -> Table:
        """Choose rows at random, without replacement.

        Parameters
        ----------
        n : int
            Number of rows, at most those of the table.
        random_state : None, int, RandomState or Generator
            Source of the choice; an int makes it reproducible.

        Returns
        -------
        Table
            The chosen rows, in random order.
        """
        check_integer("n", n, at_least=1, at_most=len(self.y))
        rows = public_generator(random_state).permutation(len(self.y))[:n]
        return replace(
            self,
            X=self.X[rows],
            y=self.y[rows],
            provenance=f"{self.provenance}; {n} of {len(self.y)} rows, chosen at random",
        )

    def in_unit_ball(self) -> tuple[FloatArray, FloatArray]:
        r"""Scale rows and targets as in the paper's experiments: NOT private.

        Returns
        -------
        X : ndarray of shape (n, d)
            Features divided by the largest row norm.
        y : ndarray of shape (n,)
            Target divided by its largest absolute value.

        Notes
        -----
        Paper: Appendix H, :math:`\|x_i\| \le 1` and :math:`|y_i| \le 1`.
        Deviation: none. Both divisors come from the data, so that a fit of the scaled problem is
        private only as far as they are public; for your own data there are public bounds.
        Sensitive inputs: the data.
        """
        return self.X / np.linalg.norm(self.X, axis=1).max(), self.y / np.abs(self.y).max()
