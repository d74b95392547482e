"""The regressors: scikit-learn's side of the methods, and the front door to all of them."""

import math
from dataclasses import fields
from typing import Any, ClassVar

from fastmix import engine, paper
from fastmix._validation import check_choice, type_error, value_error
from fastmix.engine import Method, choose_method
from fastmix.estimators.base import PrivateRegressor, estimator
from fastmix.paper import METHODS


@estimator
class AdaptiveRegression(PrivateRegressor):
    """Private least squares by objective perturbation that adapts to the data.

    A first stage spends 15% of the budget on noisy second moments and counts. They tell which
    directions the data have, how large residuals are, and where coefficients may lie; the main
    release, the minimiser of a perturbed objective, is made for them. Where there are too few rows
    for that, the first stage releases mean and spread of the target, and a line through predictions
    and targets corrects the scale of the coefficients.

    Parameters
    ----------
    rounds : int, default=None
        Rounds of second moments, at most 20; 0 means that the first stage releases mean and spread
        of the target. None means 2 to 5, or 0 if there are too few rows, from public sizes.
    solver : {"auto", "gram", "sketch"}, default="auto"
        What preconditions the solver: the Gram matrix, or that of a fast sketch.

    Attributes
    ----------
    chosen_ : dict
        What was chosen from released values, in scaled units: the spread of residuals that the
        first stage found, the clipping level of gradients, the ridge, the length up to which rows
        have full weight, and the share of the coefficients that was kept (above 1 where a
        line made up for clipping).

    Notes
    -----
    Paper: beyond it; docs/proofs/adaptive.md.
    """

    rounds: int | None = None
    solver: str = "auto"

    _method: ClassVar[type[Method]] = engine.AdaptiveObjective


@estimator
class ObjectivePerturbation(PrivateRegressor):
    """Private least squares by one release: the minimiser of a perturbed objective.

    Noise is added to the objective, and only its minimiser leaves. Where there are many columns a
    fast sketch preconditions the solver; it costs no privacy.

    Parameters
    ----------
    ridge : float, default=None
        Weight of the ridge, for rows scaled to norm 1. None means 0.3 of the noise scale s of
        the objective, or 10 s^2 d / n if that is more, as it is for few rows.
    solver : {"auto", "gram", "sketch"}, default="auto"
        What preconditions the solver: the Gram matrix, or that of a fast sketch.

    Notes
    -----
    Paper: beyond it; docs/proofs/objective.md.

    Examples
    --------
    {example}
    """

    ridge: float | None = None
    solver: str = "auto"
    residual_clip: float | None = None

    _method: ClassVar[type[Method]] = engine.PerturbedObjective


@estimator
class IHM(PrivateRegressor):
    """Iterative Hessian mixing: private least squares by noisy gradients and a private Hessian.

    Each step preconditions a noisy gradient with a private Gram matrix of the features.

    Parameters
    ----------
    variant : {"tuned", "paper"}, default="tuned"
        "paper" is the method the paper compares with: a fresh Gaussian sketch of the Hessian each
        step, half of the budget for sketches and eigenvalue, half for gradients. "tuned" releases
        second moments with Gaussian noise in rounds, and takes 32 steps in the coordinates that
        they give, with momentum and averaged iterates. It chooses the clipping level and the ridge
        from released values, and takes off what noise explains. With fewer rows the steps start
        at the mean of the target.

    Notes
    -----
    Paper: the baseline of Appendix H (Lev et al., 2026).
    Deviation: in "paper" the eigenvalue is charged by the analytic Gaussian mechanism; "tuned" is
    beyond the paper (docs/methods.md).

    Examples
    --------
    {example}
    """

    variant: str = "tuned"
    n_steps: int | None = None
    gaussian_size: int | None = None
    failure_probability: float | None = None
    residual_clip: float | None = None
    shrinkage: bool = False
    literal: bool = False

    _method: ClassVar[type[Method]] = paper.IterativeHessianMixing


@estimator
class FastIHM(PrivateRegressor):
    """Fast iterative Hessian mixing: private least squares by a fast sketch.

    Each step preconditions a noisy gradient with the private Gram matrix of a fast sketch.

    Parameters
    ----------
    variant : {"tuned", "paper"}, default="tuned"
        "paper" is Algorithm 2 as published: a fresh fast sketch each step, and thirds of the
        budget for spectral bounds, sketches and gradients. "tuned" takes the steps of the tuned
        `IHM` in coordinates from the Gram matrix of one fast sketch, with symmetric Gaussian
        noise. Where a sketch would save no time it makes none and is `IHM`: below 251 columns
        for 16,384 rows, 603 for ten million.
    calibration : {"numerical", "closed_form"}, default="numerical"
        Noise levels by optimised conversion, or by the formulas of Appendix E; the tuned variant
        takes only the first.
    sketch : {"auto", "kerdock", "srht", "dct"}, default="auto"
        The fast sketch. "auto" is the Kerdock sketch, which has the least coherence and needs no
        padding, except in the paper's variant or when ``sketch_size`` is no power of two: then it
        is the subsampled Hadamard transform.

    Notes
    -----
    Paper: Algorithms 2 and 3, Appendix E, set up as in Appendix H.
    Deviation: in "paper" gamma_2 is as corrected (docs/corrections.md); "tuned" is beyond the
    paper (docs/proofs/symmetric_noise.md).

    Examples
    --------
    {example}
    """

    variant: str = "tuned"
    calibration: str = "numerical"
    sketch: str = "auto"
    n_steps: int | None = None
    gaussian_size: int | None = None
    sketch_size: int | None = None
    failure_probability: float | None = None
    residual_clip: float | None = None
    shrinkage: bool = False
    literal: bool = False

    _method: ClassVar[type[Method]] = paper.FastIterativeHessianMixing


@estimator
class AdaSSP(PrivateRegressor):
    """Adaptive sufficient statistics perturbation: noisy X'X and X'y with a private ridge.

    Parameters
    ----------
    variant : {"tuned", "paper"}, default="tuned"
        "paper" releases X'X, X'y and the smallest eigenvalue, as Wang (2018). "tuned" releases
        X'X and X'y only: noise has half the variance off the diagonal of X'X, and the ridge follows
        from the noisy matrix.
    calibration : {"joint", "published"}, default="joint"
        For the paper's variant: "joint" calibrates its three Gaussian releases once, as one release
        of sensitivity sqrt(3); "published" uses the noise levels of Wang (2018), a third of the
        budget each.

    Notes
    -----
    Paper: a method it compares with (Wang, 2018).
    Deviation: the published noise levels are refused where their exact account exceeds the
    target, as it does for large epsilon; "tuned" is beyond it (docs/proofs/symmetric_noise.md).
    """

    variant: str = "tuned"
    calibration: str = "joint"
    failure_probability: float | None = None

    _method: ClassVar[type[Method]] = paper.AdaptiveStatistics


@estimator
class DPGradientDescent(PrivateRegressor):
    """Private gradient descent on the squared loss, full batch.

    Parameters
    ----------
    learning_rate : float, default=0.25
        Step size on the mean gradient.

    Notes
    -----
    Paper: a method it compares with.
    Deviation: noise by the analytic Gaussian mechanism over all steps.
    """

    learning_rate: float = 0.25
    n_steps: int | None = None
    residual_clip: float | None = None

    _method: ClassVar[type[Method]] = paper.GradientDescent


@estimator
class LinearMixing(PrivateRegressor):
    """Linear mixing: least squares on one private sketch of features and target together.

    Parameters
    ----------
    fast : bool, default=False
        Put a fast sketch in front of the Gaussian one (FastMix instead of GaussMix). Here
        ``gaussian_size`` defaults to ``2.5 max(d, log(2 / varrho))``.
    calibration : {"joint", "published"}, default="joint"
        "joint" accounts for sketch and spectral bounds at once; "published" adds up parts at
        shares of delta, as Theorem 1 and Lev et al. (2025) do.

    Notes
    -----
    Paper: the remark after Theorem 2; set up as in Lev et al. (2025).
    Deviation: "published" charges the eigenvalue by the analytic Gaussian mechanism; "joint" is
    beyond the paper (docs/proofs/rare_events.md).
    """

    fast: bool = False
    calibration: str = "joint"
    gaussian_size: int | None = None
    sketch_size: int | None = None
    failure_probability: float | None = None
    literal: bool = False

    _method: ClassVar[type[Method]] = paper.SketchAndSolve


@estimator
class IHS(PrivateRegressor):
    """Iterative Hessian sketch: NOT private; the accuracy that private methods approach.

    Parameters
    ----------
    sketch : {"srht", "gaussian"}, default="srht"
        "srht" is the paper's FastIHS.

    Notes
    -----
    Paper: FastIHS of Appendix H; exact gradients, a fresh sketch each step, a ridge of 1e-5.
    """

    sketch: str = "srht"
    n_steps: int | None = None
    sketch_size: int | None = None
    failure_probability: float | None = None

    _method: ClassVar[type[Method]] = paper.IterativeHessianSketch


def _linear_methods() -> list[str]:
    """Return the names of private methods for linear regression."""
    return sorted(
        name for name, each in METHODS.items() if each.family == "linear" and name != "ihs"
    )


@estimator
class PrivateLinearRegression(PrivateRegressor):
    """Private linear regression: the front door.

    Parameters
    ----------
    method : str or estimator, default="auto"
        "adaptive", "adassp", "dp_gd", "fast_ihm", "ihm", "linear_mixing" or "objective" with its
        default parameters; or an estimator, such as ``IHM(n_steps=8)``, whose method is used with
        the parameters that it does not share with this one. "auto" takes "adaptive".

    Attributes
    ----------
    method_ : str
        The method that was used.

    Examples
    --------
    {example}
    """

    method: str | PrivateRegressor = "auto"

    def _check_parameters(self) -> None:
        if isinstance(self.method, (IHS, PrivateLinearRegression)):
            condition = "be the estimator of one private method"
            raise value_error("method", condition, type(self.method).__name__)
        if isinstance(self.method, PrivateRegressor):
            for field in fields(PrivateRegressor):
                inner = getattr(self.method, field.name)
                # A copy that was made inside a budget's block carries the budget twice.
                if field.name == "accountant" and inner == self.accountant:
                    continue
                given = inner is not None if field.default is None else inner != field.default
                if given:
                    condition = f"leave {field.name} to PrivateLinearRegression"
                    raise value_error("method", condition, type(self.method).__name__)
        elif not isinstance(self.method, str):
            raise type_error("method", "be a name or an estimator", self.method)
        else:
            check_choice("method", self.method, ("auto", *_linear_methods()))
        super()._check_parameters()

    def _resolve(self, columns: int | None = None) -> Method:
        if isinstance(self.method, PrivateRegressor):
            return self.method._resolve(columns)
        chosen, _ = choose_method(columns or 1, inference=bool(self.inference))
        return METHODS[chosen if self.method == "auto" else self.method]()

    def _stated(self, method: Method) -> dict[str, Any]:
        asked = self.method if isinstance(self.method, str) else method.name
        return {**super()._stated(method), "method": asked}

    def _store(self, method: Method, plan: Any, *facts: Any) -> None:
        super()._store(method, plan, *facts)
        self.method_ = "least_squares" if math.isinf(self.epsilon) else method.name
