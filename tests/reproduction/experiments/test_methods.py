"""Methods are set up as the paper says."""

import math

import numpy as np
import pytest

from fastmix.datasets import make_sphere
from reproduction.experiments.methods import LABELS, base_size, label, make_method, sketch_rows
from reproduction.experiments.sketches import FAMILIES

N, D = 2048, 8


def test_sizes():
    assert base_size(2**17, 81, 4) == 81.0
    n = 2**22
    varrho = 1.0 / n**2 / 10.0
    assert base_size(n, 4, 4) == pytest.approx(math.log(16.0 / varrho))
    assert sketch_rows(200, 2**17, 81, 4) == 16_200
    assert sketch_rows(10**6, 1000, 8, 4) == 1024


@pytest.mark.parametrize("d", [4, 28, 81])
@pytest.mark.parametrize("kind", FAMILIES.values(), ids=FAMILIES)
def test_every_sketch_takes_its_rows(kind, d):
    """Rossman's 28 columns ask for 115 rows, which neither Kerdock nor sparse sketches have."""
    asked = sketch_rows(4, 2**17, d, 4)
    assert asked == (324 if d == 81 else 115)
    k2 = sketch_rows(4, 2**17, d, 4, kind)
    assert asked <= kind(k2, 2**17).k2 < 5 * asked


@pytest.mark.parametrize("method", LABELS)
def test_every_method_spends_what_the_figure_says(method):
    X, y = make_sphere(N, D, random_state=0)
    ratio = 8 if method == "fast_ihm_paper" else None
    model = make_method(method, ratio=ratio, epsilon=2.0, n=N, d=D, steps=4, seed=0).fit(X, y)
    spent = model.privacy_
    if method == "fast_ihs":
        assert math.isinf(spent.epsilon)
    else:
        assert 1.9 < spent.epsilon <= 2.0
        assert spent.delta <= 1.0 / N**2
    parameters = spent.parameters
    if method.endswith("_paper"):
        assert model.n_steps_ == 4
        k = math.ceil(6.0 * base_size(N, D, 4))
        assert parameters["k1" if ratio else "k"] == k
    if ratio:
        assert parameters["k2"] == sketch_rows(8, N, D, 4)
    assert np.isfinite(model.coef_).all()


def test_labels():
    assert label("fast_ihm_paper", 4) == "FastIHM, paper, r = 4"
    assert label("default", None) == "fastmix by default"
