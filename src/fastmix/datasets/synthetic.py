"""The paper's two synthetic data sets."""

import numpy as np

from fastmix._types import FloatArray
from fastmix._validation import check_integer, check_real
from fastmix.random import RandomState, public_generator


def make_sphere(
    n: int = 2**19, d: int = 2**5, *, noise_variance: float = 0.1, random_state: RandomState = None
) -> tuple[FloatArray, FloatArray]:
    r"""Make a linear problem with rows uniform on the sphere.

    Parameters
    ----------
    n, d : int
        Number of rows and of features.
    noise_variance : float, default=0.1
        Variance of the noise in the target, before scaling.
    random_state : None, int, RandomState or Generator
        Source of the data; an int makes them reproducible.

    Returns
    -------
    X, y : ndarray of shape (n, d), ndarray of shape (n,)
        Rows of norm at most 1, and targets in [-1, 1].

    Notes
    -----
    Paper: Appendix H, the set with :math:`\lambda_{\min} \approx n/d`.
    """
    rng = public_generator(random_state)
    X = rng.standard_normal(_shape(n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return _linear_model(X, noise_variance, rng)


def make_correlated(
    n: int = 2**19,
    d: int = 2**5,
    *,
    correlation: float = 0.99,
    noise_variance: float = 0.1,
    random_state: RandomState = None,
) -> tuple[FloatArray, FloatArray]:
    r"""Make a badly conditioned linear problem with strongly correlated features.

    Parameters
    ----------
    n, d : int
        Number of rows and of features.
    correlation : float, default=0.99
        Correlation of neighbouring features.
    noise_variance, random_state : float, RandomState
        As in `make_sphere`.

    Returns
    -------
    X, y : ndarray of shape (n, d), ndarray of shape (n,)
        Rows of norm at most 1, and targets in [-1, 1].

    Notes
    -----
    Paper: Appendix H, rows :math:`N(0, \Sigma)` with :math:`\Sigma_{ij} = 2 \cdot 0.99^{|i-j|}`.
    """
    rng = public_generator(random_state)
    shape = _shape(n, d)
    rho = check_real("correlation", correlation, at_least=0.0)
    position = np.arange(d)
    sigma = 2.0 * rho ** np.abs(position[:, None] - position)
    X = rng.standard_normal(shape) @ np.linalg.cholesky(sigma).T
    return _linear_model(X, noise_variance, rng)


def _shape(n: int, d: int) -> tuple[int, int]:
    return check_integer("n", n, at_least=1), check_integer("d", d, at_least=1)


def _linear_model(
    X: FloatArray, noise_variance: float, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Add targets of a random unit coefficient vector and scale both to norm 1."""
    variance = check_real("noise_variance", noise_variance, at_least=0.0)
    direction = rng.standard_normal(X.shape[1])
    theta = direction / np.linalg.norm(direction)
    y = X @ theta + np.sqrt(variance) * rng.standard_normal(len(X))
    return X / np.linalg.norm(X, axis=1).max(), y / np.abs(y).max()
