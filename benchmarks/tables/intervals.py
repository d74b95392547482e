"""Intervals of coefficients from many fits, beside the truth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from reference import Reference

from fastmix.engine.table_inference import MOST_BIAS
from fastmix.estimators.contrasts import LEAST_COUNT

#: 97.5% quantile of the normal distribution.
REACH = 1.959964
#: Levels with fewer rows than this are counted apart.
RARE = 30
TINY = 1e-12


class Intervals:
    """Estimates and standard errors of many fits, the intercept left out.

    Levels are compared with the level that has no column. With a covariance matrix of the
    coefficients, they are also compared with the most frequent level of their category.
    """

    def __init__(self, truth: Reference, names: list[str], X: Any) -> None:
        self.truth, self.names, self.X = truth, names, X
        self.estimates: list[Any] = []
        self.stds: list[Any] = []
        self.covariances: list[Any] = []
        self.known: list[Any] = []

    def add(self, model: Any) -> None:
        """Add the estimates and standard errors of a fit."""
        self.estimates.append(np.ravel(model.coef_))
        self.stds.append(np.ravel(model.coef_std_))
        covariance = getattr(model, "coef_covariance_", None)
        if covariance is not None:
            d = len(self.names)
            bias = getattr(model, "_coef_bias", np.zeros_like(covariance))
            self.covariances.append((np.asarray(covariance)[:d, :d], bias[:d, :d]))
            counts = getattr(model, "_level_counts", None)
            self.known.append(None if counts is None else (counts, model._count_errors))

    def quantities(self) -> dict[str, float]:
        """Return shares and ratios by name, those of contrasts and rare levels with a prefix."""
        counts, unchanged = self._counts(self.X), np.eye(len(self.names))
        E, S = np.array(self.estimates), np.array(self.stds)
        made = self._compared(E, S, unchanged, counts)
        if self.covariances:
            C, counts = self._contrasts(counts)
            S = np.array(
                [self._errors(C, *each) for each in zip(self.covariances, self.known, strict=True)]
            )
            found = self._compared(E @ C.T, S, C, counts)
            made |= {f"contrast_{name}": value for name, value in found.items()}
        return made

    def _errors(self, C: Any, matrices: Any, known: Any) -> Any:
        """Return standard errors of contrasts by the rules of a model's table of effects.

        They are infinite where the bias may be too large, and where a released count is too small.
        """
        with np.errstate(invalid="ignore"):
            total, bias = (np.einsum("ij,jk,ik->i", C, V, C) for V in matrices)
            stds = np.where(bias <= MOST_BIAS * total, np.sqrt(total + bias), np.inf)
        if known is None:
            return stds
        names = [name.split("=")[0] for name in self.names]
        listed = [name for name in dict.fromkeys(names) if f"{name}=other" in self.names]
        for name, own, errors in zip(listed, *known, strict=True):
            at = [j for j, each in enumerate(names) if each == name]
            # The place of the most frequent level is that of the level without a column.
            few = np.asarray(own) < LEAST_COUNT * np.asarray(errors)
            most = int(np.argmax(own))
            if most:
                few[most] = few[0]
            stds[at] = np.where(few[1:], np.inf, stds[at])
        return stds

    def _counts(self, X: Any) -> Any:
        """Return the rows of each level, and RARE for numbers."""
        levels = np.array(["=" in name for name in self.names])
        return np.where(levels, X.sum(axis=0), RARE)

    def _contrasts(self, counts: Any) -> tuple[Any, Any]:
        """Return the matrix that compares levels with the most frequent one, and their rows.

        The place of the most frequent level is that of the level without a column.
        """
        made, rows = np.eye(len(self.names)), counts.copy()
        groups = pd.Series([name.split("=")[0] for name in self.names])
        for at in groups.groupby(groups).groups.values():
            left = len(self.X) - counts[at].sum()
            most = at[int(counts[at].argmax())]
            if "=" in self.names[at[0]] and counts[most] > left:
                made[at, most] -= 1.0
                made[most, most] = -1.0
                rows[most] = left
        return made, rows

    def _compared(self, E: Any, S: Any, C: Any, counts: Any) -> dict[str, float]:
        """Return quantities of linear combinations C of the coefficients: one line per fit."""
        d = len(self.names)
        theta, std = C @ self.truth.theta[:d], self.truth.std(C)
        there, usual = self.truth.estimable(C), counts >= RARE
        made = _measured(E, S, theta, std, usual & there)
        rare = _measured(E, S, theta, std, (counts > 0) & ~usual & there)
        made |= {f"rare_{name}": value for name, value in rare.items()}
        # Rows do not determine these: aliased columns, and levels without rows.
        for name, chosen in (("aliased", (counts > 0) & ~there), ("empty", counts == 0)):
            made[name] = float(chosen.sum())
            made[f"{name}_identified"] = float(np.isfinite(S[:, chosen]).sum(axis=1).mean())
        return made


def _measured(E: Any, S: Any, theta: Any, std: Any, chosen: Any) -> dict[str, float]:
    """Return quantities of the intervals of some coefficients."""
    made = {"coefficients": float(chosen.sum())}
    if not chosen.any():
        return made
    E, S, theta, std = E[:, chosen], S[:, chosen], theta[chosen], std[chosen]
    known, error, without = np.isfinite(S), E - theta, np.abs(theta) > REACH * std
    made["identified_share"] = float(known.mean())
    made["told"] = float((np.abs(E) > REACH * S)[:, without].sum(axis=1).mean())
    made["told_not_private"] = float(without.sum())
    often = known.mean(axis=0) > 0.5
    if not often.any():
        return made
    fits = np.maximum(known.sum(axis=0), 1)
    size = np.sqrt(np.where(known, error**2, 0.0).sum(axis=0) / fits)
    mean = np.sqrt((np.where(known, S, 0.0) ** 2).sum(axis=0) / fits)
    covered = (np.abs(error) <= REACH * S) & known
    made["coverage"] = float(covered.sum() / known.sum())
    made["least_coverage"] = float((covered.sum(axis=0) / fits)[often].min())
    ratios = (mean / np.maximum(size, TINY))[often]
    for name, share in (("05", 0.05), ("50", 0.5), ("95", 0.95)):
        made[f"std_over_error_{name}"] = float(np.quantile(ratios, share))
    made["within_0.7_to_1.5"] = float(np.mean((ratios >= 0.7) & (ratios <= 1.5)))
    made["std_over_not_private"] = float(np.median((mean / np.maximum(std, TINY))[often]))
    return made
