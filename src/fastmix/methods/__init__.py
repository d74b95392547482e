"""Methods: the algorithms, one file each; scikit-learn knows nothing of them."""

from fastmix.methods.adaptive import AdaptiveObjective
from fastmix.methods.adassp import AdaptiveStatistics
from fastmix.methods.choice import choose_method
from fastmix.methods.fast_ihm import FastIterativeHessianMixing
from fastmix.methods.fit import default_delta, plan_fit, solve_fit
from fastmix.methods.gradient_descent import GradientDescent
from fastmix.methods.ihm import IterativeHessianMixing
from fastmix.methods.ihs import IterativeHessianSketch
from fastmix.methods.linear_mixing import SketchAndSolve, calibrate_fast_mix, calibrate_gauss_mix
from fastmix.methods.logistic import LogisticObjective
from fastmix.methods.objective import PerturbedObjective
from fastmix.methods.plan import METHODS, Draws, Forecast, Method, Plan, Sizes, Solution, Target
from fastmix.methods.robust import HuberObjective, QuantileObjective

__all__ = [
    "METHODS",
    "AdaptiveObjective",
    "AdaptiveStatistics",
    "Draws",
    "FastIterativeHessianMixing",
    "Forecast",
    "GradientDescent",
    "HuberObjective",
    "IterativeHessianMixing",
    "IterativeHessianSketch",
    "LogisticObjective",
    "Method",
    "PerturbedObjective",
    "Plan",
    "QuantileObjective",
    "Sizes",
    "SketchAndSolve",
    "Solution",
    "Target",
    "calibrate_fast_mix",
    "calibrate_gauss_mix",
    "choose_method",
    "default_delta",
    "plan_fit",
    "solve_fit",
]
