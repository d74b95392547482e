"""Defects that were found once and must not come back."""

import numpy as np
import pytest

from fastmix.data import ArrayRows, RowMap
from fastmix.releases import GRADIENT, Noise, fast_mix
from fastmix.sketches import SRHT, SubsampledDCT


@pytest.mark.parametrize("n", [3, 5, 7, 100])
def test_full_dct_does_not_release_rounding_errors(n):
    draw = SubsampledDCT(n, n).sample(1)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3))
    X /= np.linalg.norm(X, axis=1)[:, None]
    X2 = X.copy()
    X2[0] = 0
    out = [
        [
            fast_mix(A, k1=1, gamma=5.0, tau=14.0, omega=6.0, sketch=draw, rng=s).m_tilde[0]
            for s in range(300)
        ]
        for A in (X, X2)
    ]
    tv = max(
        abs(np.mean(np.array(out[0]) <= t) - np.mean(np.array(out[1]) <= t)) for t in np.unique(out)
    )
    assert tv < 0.3, tv  # 1 - exp(-1/omega) = 0.15


def test_rows_of_norm_1e300_are_clipped_not_dropped():
    out = RowMap(1.0)(np.array([[1e300, 0.0]]))
    assert out == pytest.approx(np.array([[1.0, 0.0]]))


def test_tiny_c_x_is_refused_or_noisy():
    try:
        out = fast_mix(
            np.eye(4, 2),
            k1=3,
            gamma=10.0,
            tau=10.0,
            omega=1.0,
            sketch=SRHT(2, 4),
            c_x=1e-170,
            literal=True,
            rng=0,
        )
    except ValueError:
        return
    assert out.eta > 0.0


@pytest.mark.parametrize("theta", [[0.0, np.inf], [np.nan, 0.0]])
def test_gradient_refuses_non_finite_theta(theta):
    rows = ArrayRows(np.array([[1.0, 0.0], [0.5, 0.5]]), RowMap(1.0), np.zeros(2))
    noise = Noise(np.random.default_rng(0))
    with pytest.raises(ValueError, match="must"):
        noise.release(GRADIENT, rows, theta=np.array(theta), clip=1.0, sigma=1.0)


@pytest.mark.parametrize("change", [{"omega": 1e308}, {"c_x": 1e160}, {"gamma": 1e308}])
def test_overflow_of_the_level_is_refused(change):
    s = {"k1": 3, "gamma": 10.0, "tau": 10.0, "omega": 1.0, "c_x": 1.0, **change}
    with pytest.raises(ValueError, match="must"):
        fast_mix(np.eye(4, 2), sketch=SRHT(2, 4), rng=0, **s)


@pytest.mark.filterwarnings("ignore")
def test_nan_through_rows_does_not_become_a_zero_distortion():
    X = np.eye(4, 2)
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="must"):
        print(
            fast_mix(
                ArrayRows(X, RowMap(1.0)),
                k1=3,
                gamma=10.0,
                tau=10.0,
                omega=1.0,
                sketch=SRHT(2, 4),
                rng=0,
            )
        )


def test_negative_tau_names_tau():
    with pytest.raises(ValueError, match="tau"):
        fast_mix(np.eye(4, 2), k1=3, gamma=10.0, tau=-1.0, omega=1.0, sketch=SRHT(2, 4), rng=0)
