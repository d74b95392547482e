"""Many fits of one estimator on two neighbours, with their transcripts."""

import warnings
from collections.abc import Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from fastmix._types import BoolArray, FloatArray
from fastmix.audit.case import PERSON_ROWS, Data, Pair
from fastmix.audit.transcript import Listening, Replaying, judging, ratios
from fastmix.data import ArrayRows, RowMap, Rows
from fastmix.engine.population import Population
from fastmix.errors import ReproducibleNoiseWarning
from fastmix.estimators import PrivateModel
from fastmix.random import public_generator, secret_generator
from fastmix.releases import Entry, Noise


class Fits:
    """Fits of one estimator on two neighbours."""

    def __init__(self, model: PrivateModel, pair: Pair, kind: type[Noise] = Noise) -> None:
        self._pair, self._intercept = pair, model.fit_intercept
        self._listening, self._replaying = judging(kind)
        self._noise: Noise | None = None  # of the fit that is running
        model._population = Population(
            rows_per_person=None if pair.present.groups is None else PERSON_ROWS,
            max_weight=None if pair.present.weights is None else 1.0,
            hidden=not model.public_rows,
        )
        # What needs no noise is done once for all fits.
        self._plan, self._checked = cache(model._planned), cache(model._check_parameters)
        self._models = [self._audited(model, data) for data in (pair.absent, pair.present)]

    def certificate(self, data: Data) -> Any:
        """Return the certificate of a fit."""
        return self._listen(data, public_generator(0))[0].privacy_

    def draw(self, data: Data, trials: int, rng: np.random.Generator) -> FloatArray:
        """Fit ``trials`` times; return the scores of the transcripts, and the coefficients."""
        own, other, shown = [], [], []
        present = data is self._pair.present
        neighbour = self._pair.absent if present else self._pair.present
        for _ in range(trials):
            fitted, listening = self._listen(data, rng)
            eta = 0.0 if fitted.eta_ is None else fitted.eta_
            shown.append([*np.ravel(fitted.coef_), *np.ravel(fitted.intercept_), eta])
            _, replaying = self._replay(neighbour, listening.transcript, rng)
            own.append(listening.likelihoods)
            other.append(replaying.likelihoods)
        return np.column_stack((ratios(own, other, 1.0 if present else -1.0), shown))

    def replay(self, rng: np.random.Generator) -> bool:
        """Tell whether fits publish nothing but functions of their transcripts."""
        data = self._pair.present, self._pair.absent
        for first, second in (data, data[::-1]):
            fitted, listening = self._listen(first, rng)
            published = _published(fitted)
            try:
                again, replaying = self._replay(second, listening.transcript, rng, strict=True)
                replaying.finished()
            except RuntimeError:
                return False
            if not _equal(published, _published(again)):
                return False
        return True

    def _listen(self, data: Data, rng: np.random.Generator) -> tuple[PrivateModel, Listening]:
        """Fit once, and return the model and its noise."""
        noise = self._listening(secret_generator(rng, warn=False))
        return self._fitted(data, rng, noise), noise

    def _replay(
        self,
        data: Data,
        transcript: Sequence[Entry],
        rng: np.random.Generator,
        *,
        strict: bool = False,
    ) -> tuple[PrivateModel, Replaying]:
        """Fit other data with the releases of a transcript."""
        noise = self._replaying(rng).follow(transcript, strict=strict)
        return self._fitted(data, rng, noise), noise

    def _fitted(self, data: Data, rng: np.random.Generator, noise: Noise) -> PrivateModel:
        model, self._noise = self._models[data is self._pair.present], noise
        model.random_state = rng
        with warnings.catch_warnings():
            # The data are made up, so a seed reveals nothing.
            warnings.simplefilter("ignore", ReproducibleNoiseWarning)
            fitted: PrivateModel = model.fit(*data.stretched(), **data.counting())
        return fitted

    def _audited(self, model: PrivateModel, data: Data) -> PrivateModel:
        """Return the estimator with its absent records absent, and no budget to spend."""
        kind = type(model)
        absent = self._intercept and not data.present.all()
        prepared = _Prepared(data.present if absent else None)
        methods = {
            "_advise": lambda *_: None,  # a weak guarantee on few rows, on purpose
            "_check_parameters": lambda _: self._checked(),
            "_make_noise": lambda _: self._noise,
            "_fit": lambda each, data, report=None: kind._fit(each, prepared.of(data), report),
            "_planned": lambda _, n, d: self._plan(n, d),
        }
        audited: type[PrivateModel] = type(kind.__name__, (kind,), methods)
        # The data are made up: nobody's budget is spent, and none is looked for.
        nobody = SimpleNamespace(check=lambda *_, **__: None, spend=lambda *_, **__: None)
        return audited(**{**model.get_params(deep=False), "accountant": nobody})


class PresentRows(ArrayRows):
    """Rows, some of them absent: zeros in all columns, also in the column of the intercept."""

    def __init__(self, rows: Rows, present: BoolArray) -> None:
        A, y = (np.concatenate(parts) for parts in zip(*rows.blocks(), strict=True))
        super().__init__(A * present[:, None], RowMap(rows.bound), y * present)
        self.constant = rows.constant
        self._all, self._present = rows, present

    def centred(self, mean: FloatArray) -> "PresentRows":
        """Return the features minus a public mean where a record is present, zeros elsewhere."""
        return PresentRows(self._all.centred(mean), self._present)


class _Prepared:
    """The data set of many fits, checked and scaled once, with some records absent or none."""

    def __init__(self, present: BoolArray | None) -> None:
        self._present = present
        self._made: dict[str, Any] = {}

    def of(self, data: Any) -> Any:
        """Return the input of the first fit, for every fit."""
        self._made.setdefault("data", data)
        return self

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._made["data"], name)
        if name not in ("check", "scaling", "rows"):
            return found

        def once(*args: Any, **kwargs: Any) -> Any:
            if name not in self._made:
                made = found(*args, **kwargs)
                if self._present is not None and isinstance(made, Rows):
                    made = PresentRows(made, self._present)
                self._made[name] = made
            return self._made[name]

        return once


def _published(model: PrivateModel) -> dict[str, Any]:
    """Return everything that a fitted model holds beyond its parameters."""
    return {name: value for name, value in vars(model).items() if name not in model.get_params()}


def _equal(first: dict[str, Any], second: dict[str, Any]) -> bool:
    def same(one: Any, other: Any) -> bool:
        if isinstance(one, np.ndarray):
            return np.array_equal(one, other, equal_nan=True)
        return str(one) == str(other)

    return first.keys() == second.keys() and all(same(first[key], second[key]) for key in first)
