"""The methods of the paper and those that it compares with, one file each."""

from fastmix.engine.plan import METHODS
from fastmix.paper.adassp import AdaptiveStatistics
from fastmix.paper.fast_ihm import FastIterativeHessianMixing
from fastmix.paper.gradient_descent import GradientDescent
from fastmix.paper.ihm import IterativeHessianMixing
from fastmix.paper.ihs import IterativeHessianSketch
from fastmix.paper.linear_mixing import SketchAndSolve, calibrate_fast_mix, calibrate_gauss_mix

__all__ = [
    "METHODS",
    "AdaptiveStatistics",
    "FastIterativeHessianMixing",
    "GradientDescent",
    "IterativeHessianMixing",
    "IterativeHessianSketch",
    "SketchAndSolve",
    "calibrate_fast_mix",
    "calibrate_gauss_mix",
]
