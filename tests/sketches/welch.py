"""Welch's bound, which no sketch can beat."""

import math

from fastmix._validation import check_integer


def welch_bound(k: int, n: int) -> float:
    """Return the least coherence that n unit columns of length k can have.

    Paper: Appendix F, ``sqrt((n - k) / (k (n - 1)))``.
    Deviation: 0 for k >= n, where columns can be orthogonal.
    """
    k = check_integer("k", k, at_least=1)
    n = check_integer("n", n, at_least=1)
    if k >= n:
        return 0.0
    return math.sqrt((n - k) / (k * (n - 1)))
