"""Parts that the docstrings of several estimators share, and the decorators that insert them.

A docstring names a part in braces on a line of its own, such as ``{attributes}``.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")

_PARTS = {
    "parameters": """\
epsilon : float, default=1.0
    Privacy budget; ``float("inf")`` fits without privacy. Neighbouring relation: zero-out (one
    record absent: its scaled row and target are zeros; n is public).
delta : float, default=None
    Probability with which the guarantee may fail; None means ``1 / n**2`` (n at least 2).
bounds : path, dict or data frame, default=None
    Public bounds of a table with named columns, in place of ``bounds_X``, ``bounds_y`` and
    ``data_norm``: a bounds file, the same as a dict, a dict of features by name (with ``bounds_y``
    for the target), or a data frame. The bounds say how to encode categories and impute missing
    values.
bounds_X : tuple of (lower, upper) or dict, default=None
    Public bounds of the features, scalars or one entry per feature; or by the names of the
    columns, as pandas Series, dicts or one dict of pairs. Values outside are clipped.
    Missing bounds are taken from the data with a `PrivacyLeakWarning`, unless ``data_norm`` is
    given.
data_norm : float, default=None
    Public bound on the Euclidean norm of a row: of scaled features when ``bounds_X`` is given,
    in the units of X otherwise. Longer rows are shortened.
fit_intercept : bool, default=True
    Fit an intercept, as a constant column inside the same row bound.
inference : bool, default={inferring}
    Spend a part of the budget on standard errors, `summary` and `conf_int`: 12% for
    `PrivateLinearRegression`, `PrivateLogisticRegression`, `PrivateHuberRegressor` and tuned
    variants of `IHM` and `FastIHM`, 23% where a table has categories or for
    `PrivateQuantileRegressor`, 5% for `AdaSSP`. `ObjectivePerturbation`, `DPGradientDescent`,
    `LinearMixing` and `IHS` have none.
accountant : BudgetAccountant, default=None
    Budget that the fit is charged to; None means the active one, if there is one.
random_state : int, RandomState or Generator, default=None
    None draws cryptographic noise. Anything else makes the noise reproducible, which voids the
    guarantee and gives a `ReproducibleNoiseWarning`: for tests and experiments only.""",
    "engine_parameters": """\
score_share : float, default=0.0
    Share of the budget, 0 or from 0.001 to 0.5, that pays for private scores of the training rows,
    such as R^2. A twentieth is enough for some ten thousand rows.
public_rows : bool, default=True
    Whether the number of rows (of persons, with ``groups``) is public. If not, the fit releases it
    with noise for 2% of epsilon, and the guarantee is for adding or removing a record; ``delta``
    must be given.""",
    "bounds_y": """\
bounds_y : tuple of (lower, upper), default=None
    Public bounds of the target. Values outside are clipped.""",
    "n_steps": """\
n_steps : int, default=None
    Exact number of steps; every step costs budget. None means 4 in the paper's variants, 32 in the
    tuned ones (12 after a fast sketch where noise hides most directions), and 100 for gradient
    descent.""",
    "gaussian_size": """\
gaussian_size : int, default=None
    Rows of the Gaussian sketch; None means ``6 max(d, log(4 T / varrho))``.""",
    "sketch_size": """\
sketch_size : int, default=None
    Rows of the fast sketch. None means ``200 max(d, log(4 T / varrho))``, at most the padded n; in
    the tuned variant n / 8 for the sparse sketch, and for others the most rows whose Gram matrix
    takes no longer than the sketch.""",
    "failure_probability": """\
failure_probability : float, default=None
    Utility failure probability varrho; None means ``delta / 10``.""",
    "residual_clip": """\
residual_clip : float, default=None
    Residuals are clipped to this, in the units of the target; None means half the width of
    ``bounds_y``, and in tuned variants a level from released counts of residuals.""",
    "shrinkage": """\
shrinkage : bool, default=False
    Keep the term ``-eta**2 theta`` of Algorithm 2, which the paper's experiments omit.""",
    "literal": """\
literal : bool, default=False
    Form the random matrices of the sketches as written, instead of drawing from an equal
    distribution with far less work.""",
    "coefficients": """\
coef_ : ndarray of shape (n_features,)
    Private coefficients, in the user's units.
intercept_ : float
    Private intercept, in the user's units.""",
    "attributes": """\
n_features_in_ : int
    Number of features.
feature_names_in_ : ndarray of shape (n_features,)
    Names of the features, when X has names that are all strings.
schema_ : fastmix.schema.PublicBounds
    The bounds of a fit with ``bounds``, with patterns written out; ``feature_names_in_`` are then
    the encoded columns, in the order of the coefficients.
bounds_X_ : tuple of ndarray or None
    Lower and upper bounds of the features that the fit used.
bounds_y_ : tuple of float
    Bounds of the target that the fit used.
n_steps_ : int
    Number of steps taken.
gamma_, eta_, gradient_noise_ : float or None
    Noise levels of the sketch and of the gradient, where the method has them.
coef_std_, intercept_std_ : ndarray, float
    Standard errors from released values, for ``inference=True``; infinite where the data do not
    identify a coefficient. Also ``coef_identified_`` and ``intercept_identified_``, which say
    so; ``coef_noise_std_``, the part that privacy noise alone accounts for;
    ``coef_bias_bound_``, the most that directions which are not identified may add; and
    ``residual_std_``, the spread of the errors, with ``residual_std_identified_``: False where
    privacy noise may hide it, so that reports and summaries leave it out.
coef_covariance_ : ndarray of shape (n_features + 1, n_features + 1)
    Covariance of coefficients and intercept, for ``inference=True``: privacy noise and sampling.
level_counts_ : dict of dict
    Released numbers of rows of each level of each category, for fits with ``bounds`` that count
    levels. `summary` compares the levels of a category with its most frequent one.
scores_ : PrivateScores
    Private R^2 of the training rows, for a ``score_share`` above 0; accuracy and area under the
    curve of a classifier, the share of targets below a quantile.
privacy_ : PrivacyCertificate
    The privacy that the fit spent, with everything needed to check it.""",
    "example": """\
>>> from fastmix import {name}
>>> from fastmix.datasets import make_sphere
>>> X, y = make_sphere(n=4096, d=4, random_state=0)
>>> model = {name}(epsilon=3.0, data_norm=1.0, bounds_y=(-1, 1), fit_intercept=False)
>>> model.fit(X, y).privacy_.epsilon <= 3.0
True""",
}


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
def estimator(cls: type[T]) -> type[T]:
    """Make a class an estimator: its fields become keyword-only parameters."""
    made = dataclass(kw_only=True, eq=False, repr=False)(cls)
    text = inspect.cleandoc(made.__doc__ or "")
    for name, part in _PARTS.items():
        text = text.replace(f"{{{name}}}", part)
    text = text.replace("{inferring}", str(getattr(made, "inference", False)))
    made.__doc__ = text.replace("{name}", made.__name__)
    return made


def estimator_of(method: type[Any]) -> Callable[[type[Any]], Any]:
    """Return a decorator that makes a class the estimator of a method, with its parameters."""

    def make(cls: type[Any]) -> Any:
        cls._method = method
        for each in fields(method):
            cls.__annotations__[each.name] = each.type
            setattr(cls, each.name, each.default)
        return estimator(cls)

    return make
