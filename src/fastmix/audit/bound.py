"""From releases on two neighbours to a lower bound on epsilon: scores, an event, its counts."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaincinv
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, QuantileTransformer, StandardScaler

from fastmix._types import FloatArray

#: Number of examples that a score is learned from.
_EXAMPLES = 10_000
#: Number of thresholds to try on each side.
_THRESHOLDS = 400
#: Confidence of the bounds by which thresholds are compared; high, as the best of many may be luck.
_CAUTION = 0.99
#: Weight of a difference of probabilities when bounds are compared.
_TIE = 1e-6


class Event(NamedTuple):
    """A set of outputs that is likely with the record and unlikely without it, or the reverse.

    ``above`` is the set of scores of at least ``threshold``, likely with the record; otherwise
    it is the set of scores of at most ``threshold``, likely without it. Several thresholds are
    counted at once.
    """

    threshold: Any
    above: bool

    def counts(self, present: FloatArray, absent: FloatArray) -> tuple[Any, Any]:
        """Return how often the event happened: where it is likely, and where it is not."""
        likely, unlikely = (present, absent) if self.above else (absent, present)
        return self._count(np.sort(likely)), self._count(np.sort(unlikely))

    def _count(self, ordered: FloatArray) -> Any:
        if self.above:
            return len(ordered) - np.searchsorted(ordered, self.threshold, side="left")
        return np.searchsorted(ordered, self.threshold, side="right")


def clopper_pearson(successes: Any, trials: int, confidence: float) -> tuple[Any, Any]:
    """Return the lower and the upper bound of Clopper and Pearson, each at this confidence."""
    k = np.asarray(successes, dtype=np.float64)
    lower = np.where(k > 0, betaincinv(np.maximum(k, 1), trials - k + 1, 1.0 - confidence), 0.0)
    rest = np.maximum(trials - k, 1)
    upper = np.where(k < trials, betaincinv(k + 1, rest, confidence), 1.0)
    return lower[()], upper[()]


def epsilon_lower_bound(
    likely: Any, unlikely: Any, trials: int, delta: float, confidence: float
) -> Any:
    r"""Return a lower bound on epsilon from the counts of one event in ``trials`` releases each.

    It is :math:`\log((p_- - \delta) / q_+)`, at least 0, because :math:`(\epsilon, \delta)`-DP
    demands :math:`p \le e^\epsilon q + \delta`; each probability gets half of what confidence
    leaves to 1.
    """
    each = 0.5 * (1.0 + confidence)
    p_lower, _ = clopper_pearson(likely, trials, each)
    _, q_upper = clopper_pearson(unlikely, trials, each)
    gap = np.maximum(p_lower - delta, 0.0)
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(gap) - np.log(q_upper), 0.0)[()]


def cautious_bound(likely: Any, unlikely: Any, trials: int, delta: float) -> Any:
    """Return the bound by which events are compared before one is tested."""
    return epsilon_lower_bound(likely, unlikely, trials, delta, _CAUTION)


def choose_event(present: FloatArray, absent: FloatArray, delta: float) -> Event:
    """Return the event that promises the largest lower bound, to be tested on other scores."""
    pooled = np.sort(np.concatenate((present, absent)))
    ranks = np.unique(np.geomspace(1, len(pooled), _THRESHOLDS).astype(int))
    best, event = -math.inf, Event(float(pooled[-1]), True)
    for above, thresholds in ((True, pooled[-ranks]), (False, pooled[ranks - 1])):
        likely, unlikely = Event(thresholds, above).counts(present, absent)
        # If all bounds are 0, choose the event that separates the two data sets best.
        margin = _TIE * (likely - unlikely) / len(present)
        bounds = cautious_bound(likely, unlikely, len(present), delta) + margin
        at = int(np.argmax(bounds))
        if bounds[at] > best:
            best, event = float(bounds[at]), Event(float(thresholds[at]), above)
    return event


def learned_score(present: FloatArray, absent: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Fit a classifier that tells releases of two data sets apart; its log-odds are the score.

    It is a logistic regression on products of features, each brought to a normal shape by its
    ranks, because releases can have heavy tails. Its examples must not be scored afterwards.
    """
    present, absent = present[:_EXAMPLES], absent[:_EXAMPLES]
    releases = np.concatenate((present, absent))
    labels = np.repeat((1, 0), (len(present), len(absent)))
    model = make_pipeline(
        QuantileTransformer(
            n_quantiles=min(1000, len(releases)), output_distribution="normal", subsample=None
        ),
        PolynomialFeatures(2, include_bias=False),
        StandardScaler(),
        LogisticRegression(max_iter=1000),
    ).fit(releases, labels)
    return lambda values: np.asarray(model.decision_function(values))
