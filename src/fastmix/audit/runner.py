"""Run audits: draw releases on two neighbours, score them, bound epsilon from below."""

import math
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from fastmix._types import FloatArray
from fastmix._validation import check_integer, check_probability, type_error
from fastmix.audit import estimators
from fastmix.audit.bound import (
    Event,
    cautious_bound,
    choose_event,
    epsilon_lower_bound,
    learned_score,
)
from fastmix.audit.case import Case, Claim
from fastmix.errors import LowAccuracyWarning, ReproducibleNoiseWarning, WeakPrivacyWarning
from fastmix.estimators import PrivateRegressor
from fastmix.random import RandomState, secret_generator

#: Every case by name, as functions of delta: a case is built when it is audited.
registry: dict[str, Callable[..., Case]] = {**estimators.ESTIMATORS}

#: Cases that only a full audit draws enough releases for.
full_only = estimators.LONG

_COLUMNS = (
    *("name", "pair", "epsilon", "delta", "lower", "share", "attainable", "reached"),
    *("confidence", "trials", "sealed", "passed"),
)


@dataclass(frozen=True)
class AuditResult:
    """Result of an audit: the claim, and a ``lower`` bound on epsilon at ``confidence``.

    A quarter of the ``trials`` on each data set chose the ``event``; ``present`` and ``absent`` are
    the scores of the others. ``sealed`` is False if a fit was seen to publish more than functions
    of its scored releases. ``attainable`` is the largest epsilon that a test on this pair can show.
    It is less than the claim if the claim adds up the costs of parts; a larger lower bound refutes
    the account.
    """

    name: str
    pair: str
    epsilon: float
    delta: float
    lower: float
    confidence: float
    trials: int
    event: Event
    present: FloatArray = field(repr=False)
    absent: FloatArray = field(repr=False)
    sealed: bool = True
    attainable: float = math.inf

    @property
    def passed(self) -> bool:
        """Whether the lower bound does not exceed the claim, and the fits were sealed."""
        return self.sealed and self.lower <= min(self.epsilon, self.attainable)

    @property
    def share(self) -> float:
        """Lower bound as a share of the claim: how strong the audit is."""
        return self.lower / self.epsilon if self.epsilon > 0.0 else np.inf

    @property
    def reached(self) -> float:
        """Lower bound as a share of the largest epsilon that these neighbours could show."""
        most = min(self.epsilon, self.attainable)
        return self.lower / most if most > 0.0 else np.inf

    def histogram(self, bins: int = 60) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return counts of scores with and without the record, and the edges of their bins."""
        both = np.concatenate((self.present, self.absent))
        edges = np.histogram_bin_edges(both, bins=bins, range=tuple(np.quantile(both, (0, 1))))
        with_, without = (np.histogram(s, edges)[0] for s in (self.present, self.absent))
        return with_, without, edges

    def to_dict(self) -> dict[str, Any]:
        """Return the row of the table as plain JSON types."""
        row = {name: getattr(self, name) for name in _COLUMNS}
        return {**row, "attainable": min(self.epsilon, self.attainable)}


def audit(
    target: Case | str | PrivateRegressor,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    trials: int | None = None,
    confidence: float = 0.99,
    rng: RandomState = None,
) -> AuditResult:
    """Bound the epsilon of a mechanism or an estimator from below, by experiment.

    Parameters
    ----------
    target : Case, str or estimator
        What to audit: a case, the name of one in `registry`, or an estimator with its parameters.
    epsilon, delta : float, optional
        The claim; by default what the target charges for its release. An estimator has an epsilon
        at every delta: a large delta, such as 0.3, shows small flaws soonest.
    trials : int, optional
        Releases to draw on each of the two data sets.
    confidence : float, default 0.99
        Of the bound, exact for any number of trials.
    rng : None, int, RandomState or Generator
        ``None`` audits the cryptographic noise of production; a seed repeats an audit.

    Returns
    -------
    AuditResult
        The bound, the claim and the scores. ``passed`` is False if the claim is refuted.

    Notes
    -----
    The first quarter of the releases chooses a score and an event, whose probabilities are bounded
    on the others by Clopper and Pearson. A mechanism that keeps its claim fails with probability
    at most ``1 - confidence``; one that passes is not proved private.

    Examples
    --------
    >>> from fastmix.audit import audit
    >>> audit("AdaSSP", trials=400, rng=0).passed
    True
    """
    case = _as_case(target)
    if epsilon is None and delta is not None and case.account is not None:
        epsilon = case.account(delta)
    claim = Claim(
        case.claim.epsilon if epsilon is None else float(epsilon),
        case.claim.delta if delta is None else float(delta),
    )
    eighth = check_integer("trials", case.trials if trials is None else trials, at_least=40) // 8
    confidence = check_probability("confidence", confidence)
    generator = secret_generator(rng)
    sealed = case.sealed is None or case.sealed(generator)
    drawn = [
        case.draw(data, 8 * eighth, generator) for data in (case.pair.present, case.pair.absent)
    ]
    scores, event = _choose(case, drawn, claim.delta, eighth)
    present, absent = (each[2 * eighth :] for each in scores)
    counts = event.counts(present, absent)
    return AuditResult(
        name=case.name,
        pair=case.pair.description,
        epsilon=claim.epsilon,
        delta=claim.delta,
        lower=float(epsilon_lower_bound(*counts, 6 * eighth, claim.delta, confidence)),
        confidence=confidence,
        trials=8 * eighth,
        event=event,
        present=present,
        absent=absent,
        sealed=sealed,
        attainable=case.attainable(claim),
    )


def _choose(
    case: Case, drawn: list[FloatArray], delta: float, eighth: int
) -> tuple[list[FloatArray], Event]:
    """Return the score and the event that do best on the first quarter.

    The likelihood ratio is the best score of a mechanism that does what it says. A broken mechanism
    may show elsewhere, so a score that is learned from the first eighth competes.
    """
    candidates = [] if case.score is None else [(case.score, 0)]
    candidates.append((learned_score(*(values[:eighth] for values in drawn)), eighth))
    found = []
    for score, start in candidates:
        # An infinity minus an infinity is not a score, and no evidence.
        scores = [np.nan_to_num(score(values), nan=0.0) for values in drawn]
        present, absent = (each[start : 2 * eighth] for each in scores)
        event = choose_event(present, absent, delta)
        counts = event.counts(*(each[eighth : 2 * eighth] for each in scores))
        found.append((cautious_bound(*counts, eighth, delta), scores, event))
    _, scores, event = max(found, key=lambda each: each[0])
    return scores, event


def audit_all(
    names: Sequence[str] | None = None,
    *,
    quick: bool = False,
    seed: int | None = None,
    workers: int | None = None,
) -> Iterator[AuditResult]:
    """Audit every case of the registry, in several processes, and yield the results in its order.

    By default ``names`` are all cases, in a ``quick`` audit those that few releases can test, and
    there is one of the ``workers`` per core. Without a ``seed`` the noise is that of production.
    """
    chosen = list(names or (name for name in registry if not (quick and name in full_only)))
    jobs = [
        (name, quick, None if seed is None else seed + 1000 * i) for i, name in enumerate(chosen)
    ]
    workers = min(workers or os.cpu_count() or 1, len(jobs))
    if workers == 1:
        yield from map(_run, jobs)
        return
    yield from Parallel(workers, return_as="generator")(delayed(_run)(job) for job in jobs)


def _run(job: tuple[str, bool, int | None]) -> AuditResult:
    name, quick, seed = job
    with warnings.catch_warnings():
        # The tables are tiny and the guarantees weak on purpose.
        for expected in (LowAccuracyWarning, ReproducibleNoiseWarning, WeakPrivacyWarning):
            warnings.simplefilter("ignore", expected)
        case = registry[name]()
        return audit(case, trials=case.quick if quick else case.trials, rng=seed)


def _as_case(target: Case | str | PrivateRegressor) -> Case:
    if isinstance(target, Case):
        return target
    if isinstance(target, PrivateRegressor):
        return estimators.estimator_case(target)
    if isinstance(target, str) and target in registry:
        return registry[target]()
    raise type_error("target", "be a Case, an estimator or the name of a registered case", target)
