"""The regressors: scikit-learn's side of the methods for linear regression."""

from typing import Any, ClassVar

from fastmix import engine, paper
from fastmix._validation import check_choice, value_error
from fastmix.engine import Method
from fastmix.estimators._documentation import estimator, estimator_of
from fastmix.estimators.models import EngineRegressor, PrivateModel, PrivateRegressor


@estimator
class PrivateLinearRegression(EngineRegressor):
    """Private linear regression by objective perturbation that adapts to the data.

    A first stage spends 15% of the budget on noisy second moments and counts. From them the fit
    chooses coordinates, a clipping level and a ridge; the main release is the minimiser of a
    perturbed least-squares objective. Where there are too few rows for second moments, the first
    stage releases mean and spread of the target, and a line through predictions and targets
    corrects the scale of the coefficients.

    Parameters
    ----------
    {parameters}
    {engine_parameters}
    {bounds_y}

    Attributes
    ----------
    {coefficients}
    {attributes}
    chosen_ : dict
        Settings that the fit chose from released values, in scaled units: the spread of residuals
        that the first stage found, the clipping level of gradients, the ridge, the length up to
        which rows have full weight, and the share of the coefficients that was kept (above 1 where
        a line made up for clipping).

    Notes
    -----
    Paper: beyond it; docs/proofs/adaptive.md.

    Examples
    --------
    {example}
    """

    inference: bool = True

    _method: ClassVar[type[Method]] = engine.AdaptiveObjective


@estimator_of(engine.PerturbedObjective)
class ObjectivePerturbation(EngineRegressor):
    """Private least squares by one release: the minimiser of a perturbed objective.

    The fit adds noise to the objective and releases only its minimiser. Where there are many
    columns a fast sketch preconditions the solver; it costs no privacy.

    Parameters
    ----------
    {parameters}
    {engine_parameters}
    {bounds_y}
    ridge : float, default=None
        Weight of the ridge, for rows scaled to norm 1. None means 0.3 of the noise scale s of
        the objective, or 10 s^2 d / n if that is more, as it is for few rows.
    solver : {"auto", "gram", "sketch"}, default="auto"
        The preconditioner of the solver: the Gram matrix of the rows, or of a fast sketch.
    {residual_clip}

    Attributes
    ----------
    {coefficients}
    {attributes}

    Notes
    -----
    Paper: beyond it; docs/proofs/objective.md.

    Examples
    --------
    {example}
    """


@estimator_of(paper.IterativeHessianMixing)
class IHM(PrivateRegressor):
    """Iterative Hessian mixing: private least squares by noisy gradients and a private Hessian.

    Each step preconditions a noisy gradient with a private Gram matrix of the features.

    Parameters
    ----------
    {parameters}
    {bounds_y}
    variant : {"tuned", "paper"}, default="tuned"
        "paper" is the method the paper compares with: a fresh Gaussian sketch of the Hessian each
        step, half of the budget for sketches and eigenvalue, half for gradients. "tuned" releases
        second moments with Gaussian noise in rounds, and takes 32 steps in the coordinates that
        they give, with momentum and averaged iterates. It chooses the clipping level and the ridge
        from released values, and takes off what noise explains. With fewer rows the steps start
        at the mean of the target.
    {n_steps}
    {gaussian_size}
    {failure_probability}
    {residual_clip}
    {shrinkage}
    {literal}

    Attributes
    ----------
    {coefficients}
    {attributes}

    Notes
    -----
    Paper: the baseline of Appendix H (Lev et al., 2026).
    Deviation: in "paper" the eigenvalue is charged by the analytic Gaussian mechanism; "tuned" is
    beyond the paper (docs/methods.md).

    Examples
    --------
    {example}
    """


@estimator_of(paper.FastIterativeHessianMixing)
class FastIHM(PrivateRegressor):
    """Fast iterative Hessian mixing: private least squares by a fast sketch.

    Each step preconditions a noisy gradient with the private Gram matrix of a fast sketch.

    Parameters
    ----------
    {parameters}
    {bounds_y}
    variant : {"tuned", "paper"}, default="tuned"
        "paper" is Algorithm 2 as published: a fresh fast sketch each step, and thirds of the
        budget for spectral bounds, sketches and gradients. "tuned" takes the steps of the tuned
        `IHM` in coordinates from the Gram matrix of one fast sketch, with symmetric Gaussian
        noise. Where a sketch would save little time it makes none and is `IHM`: below 200 columns,
        or 16 rows per column.
    sketch : {"auto", "sparse", "kerdock", "srht", "dct"}, default="auto"
        The fast sketch. "auto" is the sparse sketch, which is the fastest, and in the paper's
        variant the subsampled Hadamard transform.
    {n_steps}
    {gaussian_size}
    {sketch_size}
    {failure_probability}
    {residual_clip}
    {shrinkage}
    {literal}

    Attributes
    ----------
    {coefficients}
    {attributes}

    Notes
    -----
    Paper: Algorithms 2 and 3, Appendix E, set up as in Appendix H.
    Deviation: in "paper" the noise levels come from numerical conversion, which needs less noise
    than the closed forms; "tuned" is beyond the paper (docs/proofs/symmetric_noise.md).

    Examples
    --------
    {example}
    """


@estimator_of(paper.AdaptiveStatistics)
class AdaSSP(PrivateRegressor):
    """Adaptive sufficient statistics perturbation: noisy X'X and X'y with a private ridge.

    Parameters
    ----------
    {parameters}
    {bounds_y}
    variant : {"tuned", "paper"}, default="tuned"
        "paper" releases X'X, X'y and the smallest eigenvalue, as Wang (2018). "tuned" releases
        X'X and X'y only: noise has half the variance off the diagonal of X'X, and the ridge follows
        from the noisy matrix.
    calibration : {"joint", "published"}, default="joint"
        For the paper's variant: "joint" calibrates its three Gaussian releases once, as one release
        of sensitivity sqrt(3); "published" uses the noise levels of Wang (2018), a third of the
        budget each.
    {failure_probability}

    Attributes
    ----------
    {coefficients}
    {attributes}

    Notes
    -----
    Paper: a method it compares with (Wang, 2018).
    Deviation: the published noise levels are refused where their exact account exceeds the
    target, as it does for large epsilon; "tuned" is beyond it (docs/proofs/symmetric_noise.md).
    """


@estimator_of(paper.GradientDescent)
class DPGradientDescent(PrivateRegressor):
    """Private gradient descent on the squared loss, full batch.

    Parameters
    ----------
    {parameters}
    {bounds_y}
    learning_rate : float, default=0.25
        Step size on the mean gradient.
    {n_steps}
    {residual_clip}

    Attributes
    ----------
    {coefficients}
    {attributes}

    Notes
    -----
    Paper: a method it compares with.
    Deviation: noise by the analytic Gaussian mechanism over all steps.
    """


@estimator_of(paper.SketchAndSolve)
class LinearMixing(PrivateRegressor):
    """Linear mixing: least squares on one private sketch of features and target together.

    Parameters
    ----------
    {parameters}
    {bounds_y}
    fast : bool, default=False
        Put a fast sketch in front of the Gaussian one (FastMix instead of GaussMix). Here
        ``gaussian_size`` defaults to ``2.5 max(d, log(2 / varrho))``.
    calibration : {"joint", "published"}, default="joint"
        "joint" accounts for sketch and spectral bounds at once; "published" adds up parts at
        shares of delta, as Theorem 1 and Lev et al. (2025) do.
    {gaussian_size}
    {sketch_size}
    {failure_probability}
    {literal}

    Attributes
    ----------
    {coefficients}
    {attributes}

    Notes
    -----
    Paper: the remark after Theorem 2; set up as in Lev et al. (2025).
    Deviation: "published" charges the eigenvalue by the analytic Gaussian mechanism; "joint" is
    beyond the paper (docs/proofs/rare_events.md).
    """


@estimator_of(paper.IterativeHessianSketch)
class IHS(PrivateRegressor):
    """Iterative Hessian sketch: NOT private; the accuracy that private methods approach.

    Parameters
    ----------
    {parameters}
    {bounds_y}
    sketch : {"srht", "gaussian"}, default="srht"
        "srht" is the paper's FastIHS.
    {n_steps}
    {sketch_size}
    {failure_probability}

    Attributes
    ----------
    {coefficients}
    {attributes}

    Notes
    -----
    Paper: FastIHS of Appendix H; exact gradients, a fresh sketch each step, a ridge of 1e-5.
    """


#: Estimators of the private methods for linear regression, by the name of the method.
LINEAR: dict[str, type[PrivateRegressor]] = {
    kind._method.name: kind
    for kind in (
        PrivateLinearRegression,
        AdaSSP,
        DPGradientDescent,
        FastIHM,
        IHM,
        LinearMixing,
        ObjectivePerturbation,
    )
}


def linear_estimator(method: str) -> type[PrivateRegressor]:
    """Return the estimator of a private method for linear regression; "auto" is the default."""
    check_choice("method", method, ("auto", *LINEAR))
    return PrivateLinearRegression if method == "auto" else LINEAR[method]


def with_method(model: PrivateModel, method: str) -> PrivateRegressor:
    """Return an estimator of another method with the same parameters and population.

    A parameter that is not at its default and that the other estimator does not have is an error.
    Methods without intervals get ``inference=False``.
    """
    kind = linear_estimator(method)
    known, defaults = kind().get_params(), type(model)().get_params()
    given: dict[str, Any] = {}
    for name, value in model.get_params(deep=False).items():
        if name in known:
            given[name] = value
        elif value != defaults[name]:
            raise value_error(name, f"be {defaults[name]!r} for method {method!r}", value)
    given["inference"] = given["inference"] and kind._method.infers
    made = kind(**given)
    made._population = model._population
    return made
