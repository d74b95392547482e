"""The paper in code: its algorithms, its theorems, and the methods that it compares, one file each.

`algorithms` has Algorithms 1 to 3 with the paper's line numbers, `accuracy` Theorem 2 and its
lemmas, and `theorem_1` is Theorem 1 as printed; `calibrate_fast_mix` gives the noise that meets it,
`calibrate_fast_ihm` that of Theorem 2.1.
The other files are methods that estimators run.
"""

from fastmix.engine.plan import METHODS
from fastmix.paper.accuracy import (
    AccuracyTheorem,
    Distortions,
    distortions,
    embedding_error,
    fast_sketch_rows,
    gaussian_norm_bound,
    residual_bound,
)
from fastmix.paper.adassp import AdaptiveStatistics
from fastmix.paper.algorithms import (
    Mixed,
    Regressed,
    algorithm_1,
    algorithm_2,
    algorithm_3,
    debiased_step,
)
from fastmix.paper.fast_ihm import FastIterativeHessianMixing
from fastmix.paper.gradient_descent import GradientDescent
from fastmix.paper.ihm import IterativeHessianMixing
from fastmix.paper.ihs import IterativeHessianSketch
from fastmix.paper.linear_mixing import SketchAndSolve, calibrate_fast_mix, calibrate_gauss_mix
from fastmix.paper.noise_levels import calibrate_fast_ihm, theorem_1

__all__ = [
    "METHODS",
    "AccuracyTheorem",
    "AdaptiveStatistics",
    "Distortions",
    "FastIterativeHessianMixing",
    "GradientDescent",
    "IterativeHessianMixing",
    "IterativeHessianSketch",
    "Mixed",
    "Regressed",
    "SketchAndSolve",
    "algorithm_1",
    "algorithm_2",
    "algorithm_3",
    "calibrate_fast_ihm",
    "calibrate_fast_mix",
    "calibrate_gauss_mix",
    "debiased_step",
    "distortions",
    "embedding_error",
    "fast_sketch_rows",
    "gaussian_norm_bound",
    "residual_bound",
    "theorem_1",
]
