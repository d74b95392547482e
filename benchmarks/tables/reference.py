"""Least squares and maximum likelihood of bounded rows: what private fits are compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

#: Directions with a smaller share of the largest eigenvalue count as absent.
ABSENT = 1e-10
#: Maximum likelihood has hardly any ridge, so that it exists for levels with a single label.
HARDLY = 100.0


@dataclass(frozen=True)
class Reference:
    """Coefficients without privacy, intercept last, their covariance, and absent directions."""

    theta: Any
    covariance: Any
    absent: Any
    linear: bool
    ends: Any = None

    def scores(self, X: Any) -> Any:
        return X @ self.theta[:-1] + self.theta[-1]

    def predict(self, X: Any) -> Any:
        """Return predictions inside the bounds of the target, or probabilities."""
        found = self.scores(X)
        return found.clip(*self.ends) if self.linear else expit(found)

    def std(self, C: Any) -> Any:
        """Return standard errors of linear combinations of the coefficients."""
        V = self.covariance[:-1, :-1]
        return np.sqrt(np.einsum("ij,jk,ik->i", C, V, C).clip(0.0))

    def estimable(self, C: Any) -> Any:
        """Return which combinations the rows determine: not empty levels, nor aliased columns.

        Combinations must be of coefficients of columns in the same unit.
        """
        return ((C @ self.absent[:-1]) ** 2).sum(axis=1) < 1e-6


def least_squares(X: Any, y: Any, ends: Any) -> Reference:
    """Return the shortest solution in units of the columns' largest values."""
    D, unit = _scaled(X)
    inverse, absent = _inverse(D.T @ D)
    theta = inverse @ (D.T @ y)
    freedom = max(len(y) - D.shape[1] + absent.shape[1], 1)
    variance = float(np.sum((y - D @ theta) ** 2)) / freedom
    return Reference(theta / unit, variance * inverse / np.outer(unit, unit), absent, True, ends)


def maximum_likelihood(X: Any, y: Any) -> Reference:
    """Return a logistic fit with hardly any ridge."""
    D, unit = _scaled(X)
    fit = LogisticRegression(C=HARDLY, max_iter=500).fit(D[:, :-1], y)
    theta = np.append(fit.coef_[0], fit.intercept_[0])
    likely = expit(D @ theta)
    inverse, _ = _inverse((D * (likely * (1.0 - likely))[:, None]).T @ D)
    _, absent = _inverse(D.T @ D)
    return Reference(theta / unit, inverse / np.outer(unit, unit), absent, False)


def _scaled(X: Any) -> tuple[Any, Any]:
    """Return columns divided by their largest value, if that is not 0, and a constant one."""
    D = np.column_stack([X, np.ones(len(X))])
    unit = np.abs(D).max(axis=0)
    unit[unit == 0.0] = 1.0
    return D / unit, unit


def _inverse(gram: Any) -> tuple[Any, Any]:
    """Return the pseudo-inverse, and the directions that the rows do not have as columns."""
    values, vectors = np.linalg.eigh(gram)
    there = values > ABSENT * values[-1]
    inverse = (vectors[:, there] / values[there]) @ vectors[:, there].T
    return inverse, vectors[:, ~there]
