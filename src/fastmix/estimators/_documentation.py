"""What the estimators' docstrings have in common, and the decorator that puts it there."""

import inspect
import re
from dataclasses import dataclass, field, fields
from typing import TypeVar, dataclass_transform

T = TypeVar("T")

_COMMON_PARAMETERS = """\
epsilon : float, default=1.0
    Privacy budget; ``float("inf")`` gives ordinary least squares. Neighbouring relation: zero-out
    (one record absent: its scaled row and target are zeros; n is public).
delta : float, default=None
    Probability with which the guarantee may fail; None means ``1 / n**2`` (n at least 2).
bounds : path, dict or data frame, default=None
    Public bounds of a table with named columns, in place of ``bounds_X``, ``bounds_y`` and
    ``data_norm``: a bounds file, the same as a dict, a dict of features by name (with ``bounds_y``
    for the target), or a data frame. Categories are encoded and missing values imputed by them.
bounds_X : tuple of (lower, upper) or dict, default=None
    Public bounds of the features, scalars or one entry per feature; or by the names of the
    columns, as pandas Series, dicts or one dict of pairs. Values outside are clipped.
    Missing bounds are taken from the data with a `PrivacyLeakWarning`, unless ``data_norm`` is
    given.
bounds_y : tuple of (lower, upper), default=None
    Public bounds of the target. Values outside are clipped.
clip_predictions : bool, default=True
    Move predictions outside the bounds of the target to the nearer bound. False is for those who
    extrapolate; it changes nothing else, so ``set_params`` may set it after a fit.
data_norm : float, default=None
    Public bound on the Euclidean norm of a row: of scaled features when ``bounds_X`` is given,
    in the units of X otherwise. Longer rows are shortened.
fit_intercept : bool, default=True
    Fit an intercept, as a constant column inside the same row bound.
inference : bool, default=False
    Spend a part of the budget on what standard errors, `summary` and `conf_int` need: 15% for
    `AdaptiveRegression` and 23% where a table has categories, 5% for `IHM`, `FastIHM` and
    `AdaSSP`; the other methods have none.
noise : {"float", "exact"}, default="float"
    "exact" draws the noise of scalars, gradients and statistics from discrete distributions on a
    grid, by OpenDP's samplers (``pip install "fastmix[exact]"``); sketches are always floating
    point. It cannot be seeded, and takes epsilon from 1e-6 to 100.
accountant : BudgetAccountant, default=None
    Budget that the fit is charged to; None means the active one, if there is one.
random_state : int, RandomState or Generator, default=None
    None draws cryptographic noise. Anything else makes the noise reproducible, which voids the
    guarantee and gives a `ReproducibleNoiseWarning`: for tests and experiments only.
verbose : bool, default=False
    Show progress: on a terminal and in a notebook a bar with the time left, after two seconds of
    work; elsewhere lines on standard error. Only steps of the public plan are shown.
max_rows_per_group : int, default=None
    With ``groups`` in `fit`, the public number of rows of a person that count at most; others are
    left out at random. A person's rows count as one record together, so the fit protects persons:
    `AdaptiveRegression` and `ObjectivePerturbation` only.
score_share : float, default=0.0
    Share of the budget, up to 0.5, that pays for a private R^2 of the training rows:
    `AdaptiveRegression` only. A twentieth is enough for some ten thousand rows.
max_weight : float, default=None
    With ``sample_weight`` in `fit`, the public bound on the weight of a row; weights above it count
    as if they were equal to it. Choose it from public knowledge of the weights:
    `AdaptiveRegression` and `ObjectivePerturbation` only.
public_rows : bool, default=True
    Whether the number of rows (of persons, with ``groups``) is public. If not, it is released with
    noise for 2% of epsilon, and the guarantee is for adding or removing a record; ``delta`` must be
    given. `AdaptiveRegression` and `ObjectivePerturbation` only."""

_METHOD_PARAMETERS = {
    "n_steps": """\
n_steps : int, default=None
    Number of steps. It costs budget, so it is exact and never a maximum. None means what the
    method is set up for: 4 in the paper's variants, 16 in the tuned and joint ones, 100 for
    gradient descent.""",
    "gaussian_size": """\
gaussian_size : int, default=None
    Rows of the Gaussian sketch; None means ``6 max(d, log(4 T / varrho))``, and 24 for 6 in the
    joint variants, which draw only one.""",
    "sketch_size": """\
sketch_size : int, default=None
    Rows of the fast sketch. None means ``200 max(d, log(4 T / varrho))``, at most the padded n; in
    the tuned variant the most rows whose Gram matrix takes no longer than the sketch.""",
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
}

_COMMON_ATTRIBUTES = """\
coef_ : ndarray of shape (n_features,)
    Private coefficients, in the user's units.
intercept_ : float
    Private intercept, in the user's units.
n_features_in_ : int
    Number of features.
feature_names_in_ : ndarray of shape (n_features,)
    Names of the features, when X has names that are all strings.
schema_ : fastmix.schema.PublicBounds
    The bounds of a fit with ``bounds``, with patterns written out; ``feature_names_in_`` are then
    the encoded columns, in the order of the coefficients.
bounds_X_ : tuple of ndarray or None
    Lower and upper bounds of the features that were used.
bounds_y_ : tuple of float
    Bounds of the target that were used.
n_steps_ : int
    Number of steps taken.
gamma_, eta_, gradient_noise_ : float or None
    Noise levels of the sketch and of the gradient, where the method has them.
coef_std_, intercept_std_ : ndarray, float
    Standard errors from released values, for ``inference=True``; infinite where the data do not
    identify a coefficient. Also ``coef_identified_`` and ``intercept_identified_``, which say
    so; ``coef_noise_std_``, the part that privacy noise alone accounts for;
    ``coef_bias_bound_``, what directions that are not identified may add; and
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
    What the fit spent, with everything needed to check it."""

_EXAMPLE = """\
>>> from fastmix import {name}
>>> from fastmix.datasets import make_sphere
>>> X, y = make_sphere(n=4096, d=4, random_state=0)
>>> model = {name}(epsilon=3.0, data_norm=1.0, bounds_y=(-1, 1), fit_intercept=False)
>>> model.fit(X, y).privacy_.epsilon <= 3.0
True"""


def _entries(text: str) -> dict[str, str]:
    """Return the entries of a section by what stands before their colons."""
    parts = re.split(r"^(?=\S)", text, flags=re.MULTILINE)
    return {part.split(" :")[0]: part.rstrip("\n") for part in parts if part.strip()}


#: The head of a section of a docstring.
_SECTION = r"\n\n(Parameters|Attributes|Notes|Examples)\n-+\n"


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
def estimator(cls: type[T]) -> type[T]:
    """Make a class an estimator: keyword-only parameters from its fields, shared documentation.

    Its docstring describes the parameters and attributes that it adds, or describes otherwise; the
    common ones, and those that methods share, join them.
    """
    made = dataclass(kw_only=True, eq=False, repr=False)(cls)
    names = [f.name for f in fields(made)]  # type: ignore[arg-type]
    shared = [text for name, text in _METHOD_PARAMETERS.items() if name in names]
    head, *rest = re.split(_SECTION, inspect.cleandoc(made.__doc__ or ""))
    own = dict(zip(rest[::2], rest[1::2], strict=True))
    known = _entries("\n".join([_COMMON_PARAMETERS, *shared, own.get("Parameters", "")]))
    parameters = [known[name] for name in names if name in known]
    attributes = _entries(_COMMON_ATTRIBUTES) | _entries(own.get("Attributes", ""))
    example = _EXAMPLE.format(name=cls.__name__)
    sections: dict[str, list[str | None]] = {
        "Parameters": [*parameters],
        "Attributes": [*attributes.values()],
        "Notes": [own.get("Notes")],
        "Examples": [own.get("Examples", "").replace("{example}", example)],
    }
    for name, texts in sections.items():
        if any(texts):
            head += "\n\n" + "\n".join([name, "-" * len(name), *filter(None, texts)])
    made.__doc__ = head
    return made
