"""What mechanisms may ask of the data."""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import replace
from functools import partial
from inspect import signature
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import numpy as np

from fastmix._types import FloatArray
from fastmix._validation import value_error
from fastmix.data import curvatures, reductions, scores
from fastmix.data.persons import Persons
from fastmix.data.reductions import Block, Measure, Pass
from fastmix.kernels import mapped, measured
from fastmix.kernels.losses import Loss
from fastmix.schema.categories import Categories
from fastmix.sketches import SketchDraw

T = TypeVar("T")
P = ParamSpec("P")

#: Rows are shortened to less than 1, by this and by the error of sums.
_HAIR = 2.0**-40
#: With fewer rows, or if it can err by more than this, a sum is not taken as a difference.
_FEW_ROWS, _MOST_ERROR = 1 << 13, 2.0**-7
#: Rows that a table has at most, where their number is not public.
_MOST_ROWS = 1 << 33
#: Bytes of gradients of persons that are held at a time.
_PERSON_BYTES = 128 << 20
#: Lengths are measured in single precision if that adds at most this to them.
_SINGLE = 2.0**-4


def _over(
    name: str,
    value: Callable[Concatenate[Block, P], T],
    combine: Callable[[T, T], T] = operator.add,
    *,
    quiet: bool = False,
) -> Callable[Concatenate[Rows, P], T]:
    """Return the method of rows that runs a pass: the value of a block, combined over blocks."""

    names = list(signature(value).parameters)[1:]

    def method(rows: Rows, /, *values: P.args, **named: P.kwargs) -> T:
        given: Any = {**dict(zip(names, values, strict=False)), **named}
        return rows.run(Pass(name, partial(value, **given), combine, quiet))

    method.__doc__ = value.__doc__
    return method


class Rows(ABC):
    """A matrix X of ``n`` rows of norm at most ``bound``, perhaps with targets y in [-1, 1].

    Wherever the rows lie, a kind of rows says how to `run` a pass; what the passes are is the same
    for all.  Results are functions of raw data: they must not leave the mechanism that asked for
    them.
    """

    n: int
    d: int
    bound: float
    #: Value of the last column if that is constant, else 0.
    constant: float = 0.0
    #: Persons with several rows: ``n`` counts them, and sums are weighted. None for single rows.
    persons: Persons | None = None
    #: Columns that are levels of categories, where bounds of a table tell them.
    categories: Categories | None = None
    #: What bounds sums of weights for rounding, where ``n`` is an estimate of them.
    _most: int | None = None
    _joint: FloatArray | None = None

    @abstractmethod
    def run(self, task: Pass[T]) -> T:
        """Return the value of a pass over all rows."""

    @abstractmethod
    def blocks(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield consecutive blocks of mapped rows with their targets (zeros if there are none)."""

    @abstractmethod
    def apply(self, draw: SketchDraw) -> FloatArray:
        """Return ``S X`` for a drawn sketch S."""

    @abstractmethod
    def sketch(self, draw: SketchDraw) -> tuple[FloatArray, float]:
        """Return ``S X`` and the row distortion m-hat of a drawn sketch S."""

    # Passes over all rows, as `reductions` and `scores` describe them. A quiet pass is reported
    # nowhere, because how often a solver runs it depends on the data.
    gram = _over("Gram matrix", reductions.gram)
    total = _over("mean", reductions.total)
    gradient = _over("gradient", reductions.gradient)
    slopes = _over("objective", reductions.slopes, reductions.add_slopes, quiet=True)
    curved = _over("curvature", reductions.curved, quiet=True)
    sampled_curvature = _over("curvature", reductions.sampled_curvature, quiet=True)
    residual_counts = _over("residuals", reductions.residual_counts)
    signed_counts = _over("residuals", reductions.signed_counts)
    slope_counts = _over("gradients", reductions.slope_counts)
    line = _over("line", scores.line)
    residual_layers = _over("scores", scores.residual_layers)
    below = _over("scores", scores.below)
    contrasts = _over("scores", scores.contrasts)
    label_counts = _over("scores", scores.label_counts)
    class_hits = _over("scores", scores.class_hits)
    loss_layers = _over("scores", scores.loss_layers)

    @property
    def most(self) -> int:
        """A public bound on the number of records, and so on sums of their weights."""
        return self.n if self._most is None else self._most

    def counted(self, n: int, most: int | None = None) -> Self:
        """Return the same rows as if they were n, a released number.

        What bounds rounding errors is the public number of rows, or ``most`` where that is not
        public.
        """
        rows = copy(self)
        rows._most, rows.n = self.most if most is None else most, n
        if most is not None and self.persons is not None:
            table_rows = min(most * self.persons.most_rows, _MOST_ROWS)
            rows.persons = replace(self.persons, rows=table_rows)
        return rows

    @property
    def additions(self) -> int:
        """How many additions the term of a record goes through at most: public, for any order."""
        if self.persons is None:
            return mapped.additions(self.most, self.d + 1)
        # Those of a person's rows come first, and are squared where a product has them twice.
        count = max(self.most, self.persons.rows or len(self.persons.weights))
        return mapped.additions(count, self.d + 1) + 2 * self.persons.most_rows

    def total_weight(self) -> float:
        """Return the sum of the weights."""
        return float(self.n if self.persons is None else self.persons.weights.sum())

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Return ``X'X`` and ``X'y``."""
        total, d = self.joint_moments(), self.d
        return total[:d, :d].copy(), total[:d, d].copy()

    def joint_moments(self) -> FloatArray:
        """Return ``(X, y)'(X, y)``, which is computed once."""
        if self._joint is None:
            self._joint = self.run(Pass("moments", reductions.joint_moments))
        return self._joint

    def target_total(self) -> float:
        """Return the sum of the targets."""
        return float(self.run(Pass("mean", reductions.target_total))[0])

    def second_moments(self, transform: FloatArray) -> FloatArray:
        r"""Return ``Z'Z`` for rows ``z = T'(x, y)`` that are shortened to length 1.

        If rounding allows, it is ``T' (M - E) T`` for ``M = (X, y)'(X, y)``, which is known, and
        for E, what shortening takes off the rows that are longer than 1.

        They are shortened to :math:`\sqrt{1 - 2e}` less a hair: one row changes the exact sum by at
        most :math:`1 - 2e`, and 2e covers the errors of two computed sums. Each is at most c u
        times the sum of squared lengths, for c `additions` and the unit u: n at most for Z,
        :math:`2 n (1 + b^2) \|T\|_F^2` for M and E and rows of norm b.
        """
        stretch = float(np.linalg.norm(transform))
        reach = float(np.hypot(1.0, self.bound))
        error = self._sum_error(self.d + 1)
        joint = 2.0 * error * (reach * stretch) ** 2
        if self.n < _FEW_ROWS or not joint <= _MOST_ERROR or self.persons is not None:
            longest = math.sqrt(max(1.0 - 2.0 * error, 0.0)) - _HAIR
            if not error <= _MOST_ERROR:  # so large a bound goes down with the squared lengths
                longest = (1.0 - _HAIR) / math.sqrt(1.0 + 2.0 * error)
            value: Any = partial(reductions.second_moments, transform=transform, longest=longest)
            return self.run(Pass("second moments", value))
        longest = math.sqrt(1.0 - 2.0 * joint) - _HAIR
        total = self.joint_moments()
        sides = float(np.linalg.norm(transform, 1)) * float(np.linalg.norm(transform, np.inf))
        if not min(stretch, math.sqrt(sides)) * reach * (1.0 + _HAIR) <= longest:
            single = measured.length_error(transform, single=True) * reach <= _SINGLE
            value = partial(
                reductions.excess_moments,
                transform=transform,
                longest=longest,
                norm=reach * (1.0 + _HAIR),
                single=single,
            )
            total = total - self.run(Pass("second moments", value))
        moments = transform.T @ total @ transform
        return np.asarray(0.5 * (moments + moments.T))

    def _sum_error(self, size: int) -> float:
        """Return a bound on the error of a sum of products of rows, ``size`` numbers long.

        It is in units of the largest squared length, and the same wherever the rows lie.
        """
        return mapped.sum_error(self.additions + 5 * size + 64, self.most)

    def curvatures(
        self,
        theta: FloatArray,
        loss: Loss,
        transform: FloatArray,
        square: float,
        weights: FloatArray | None = None,
        *,
        least: float,
        squares: bool = True,
    ) -> tuple[FloatArray, FloatArray]:
        r"""Return sums of ``f'' z z'`` and ``f'^2 z z'`` for rows ``z = T'x`` that were `measured`.

        No term of the first has a norm above ``square``, and no row is shorter than ``least``.
        Coordinates may have ``weights`` of at most 1. Of persons, the second sum has the squares of
        their gradients, which are the sums of the gradients of their rows. Without ``squares`` the
        second is 0.

        If rounding allows, the sums are ``T' G T`` for Gram matrices G of rows with scales, or G is
        taken off a Gram matrix that is known. Then a term is limited to its bound less 2e, which
        covers the errors of two computed sums. Each is at most 2 c u times the sum of the squared
        lengths of scaled rows, times :math:`\|T\|_F^2`, as in `second_moments`.
        """
        at = curvatures.At(theta, loss, transform, weights)
        own = squares and (self.persons is None or self.persons.codes is None)
        steep = loss.lipschitz / least
        if loss.squares:
            steep = min(steep, 1.0 + self.bound * float(np.linalg.norm(theta)))
        stretch = float(np.linalg.norm(transform))  # weights of coordinates are at most 1
        error = 2.0 * self._sum_error(self.d) * (self.bound * stretch) ** 2
        bent, sloped = error * loss.bend, error * steep**2 if own else 0.0
        few = self.n < _FEW_ROWS or isinstance(transform, measured.Spiked)
        if few or not max(bent / square, sloped / loss.lipschitz**2) <= _MOST_ERROR:
            sums = partial(curvatures.curvatures, at=at, square=square, squares=own)
            totals = self.run(Pass("curvature", sums))
        else:
            lacking = loss.squares and self.persons is None and self._joint is not None
            limits: Any = {
                "square": (square - 2.0 * bent) * (1.0 - _HAIR),
                "steepest": math.sqrt(loss.lipschitz**2 - 2.0 * sloped) * (1.0 - _HAIR),
                "squares": own,
                "lacking": lacking,
            }
            sums = partial(curvatures.whole_curvatures, at=at, **limits)
            grams = self.run(Pass("curvature", sums))
            if lacking:
                grams[0] = self.joint_moments()[: self.d, : self.d] - grams[0]
            T = transform if weights is None else transform * weights
            totals = T.T @ grams @ T
            totals = 0.5 * (totals + totals.transpose(0, 2, 1))
        if self.persons is None or own or not squares:
            return totals[0], totals[1]
        total, step = np.zeros_like(totals[0]), max(1, _PERSON_BYTES // (8 * self.d))
        # Quiet: how many passes there are depends on the number of persons, which may be hidden.
        for first in range(0, self.persons.count, step):
            value = partial(curvatures.person_gradients, at=at, persons=(first, first + step))
            task = Pass("gradients of persons", value, curvatures.add_persons, quiet=True)
            gradients = self.run(task)[1]
            total += mapped.gram(mapped.Mapped(gradients))
        return totals[0], total

    def parts(self) -> tuple[Rows, FloatArray | None, FloatArray]:
        """Return the rows, no matrix and no centre; see `TransformedRows`."""
        return self, None, np.zeros(self.d)

    @abstractmethod
    def measured(self, measure: Measure) -> Rows:
        """Return the same rows with their lengths in other coordinates."""

    def centred(self, mean: FloatArray) -> Rows:
        """Return the features minus a public mean, shortened to `bound` again; no constant.

        Rows whose map has no public centre refuse.
        """
        raise value_error("rows", "have a public centre to move", type(self).__name__)


class TransformedRows:
    """Rows in coordinates phi with ``theta = center + T phi``, measured there.

    It has what a solver asks for; the rows themselves are never transformed.
    """

    def __init__(self, rows: Rows, transform: FloatArray, center: FloatArray, least: float) -> None:
        self.n, self.most, self.d = rows.n, rows.most, transform.shape[1]
        self._rows = rows.measured(Measure(transform, least))
        self._transform, self._center = transform, center

    def parts(self) -> tuple[Rows, FloatArray | None, FloatArray]:
        """Return the rows as they are, with the matrix T and the centre."""
        return self._rows, self._transform, self._center

    def theta(self, phi: FloatArray) -> FloatArray:
        """Return the coefficients of the rows as they are."""
        return self._center + self._transform @ phi

    def apply(self, draw: SketchDraw) -> FloatArray:
        """Return ``S X T`` for a drawn sketch S."""
        return self._rows.apply(draw) @ self._transform

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Return ``T'X'X T`` and ``T'X'(y - X center)``."""
        (gram, moment), T = self._rows.moments(), self._transform
        return T.T @ gram @ T, T.T @ (moment - gram @ self._center)

    def slopes(
        self, theta: FloatArray, loss: Loss, *, excess: bool = False
    ) -> tuple[FloatArray, FloatArray, int]:
        """Return what `Rows.slopes` does, in these coordinates."""
        total, square, outside = self._rows.slopes(self.theta(theta), loss, excess=excess)
        T = self._transform
        return total @ T, T.T @ square @ T if excess else square, outside

    def curved(
        self, theta: FloatArray, loss: Loss, v: FloatArray, *, secant: bool = False
    ) -> FloatArray:
        """Return what `Rows.curved` does, in these coordinates."""
        (at, along), T = (self.theta(theta), self._transform @ v), self._transform
        return np.asarray(T.T @ self._rows.curved(at, loss, along, secant=secant))

    def sampled_curvature(self, theta: FloatArray, loss: Loss, every: int) -> FloatArray:
        """Return what `Rows.sampled_curvature` does, in these coordinates."""
        T = self._transform
        return np.asarray(T.T @ self._rows.sampled_curvature(self.theta(theta), loss, every) @ T)
