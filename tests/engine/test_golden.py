"""The mathematics of every method is what was stored: noise levels, sizes, accounts and fits."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

_SPEC = importlib.util.spec_from_file_location("golden", Path(__file__).with_name("golden.py"))
golden = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(golden)

STORED = json.loads(golden.PATH.read_text())
SETTINGS = list(golden.settings())


def same(computed, stored, tolerance=1e-12):
    """Compare nested values; noise levels to 1e-12, and epsilon to what it is rounded up by."""
    if isinstance(stored, dict):
        return computed.keys() == stored.keys() and all(
            same(computed[key], stored[key], 1e-10 if key == "epsilon" else tolerance)
            for key in stored
        )
    if isinstance(stored, list):
        return len(computed) == len(stored) and all(
            same(*pair, tolerance) for pair in zip(computed, stored, strict=True)
        )
    if isinstance(stored, float):
        return computed == pytest.approx(stored, rel=tolerance, abs=0.0)
    return computed == stored


#: In these the account of one Gaussian release, which is rounded up by up to 1e-10, sets gamma.
ROUNDED = {"IHM paper", "IHM paper intervals", "LinearMixing published"}


def compare(name, numbers):
    for number in numbers:
        computed = json.loads(json.dumps(golden.plan_of(name, *SETTINGS[number])))
        stored = STORED["plans"][name][number]
        tolerance = 1e-10 if name in ROUNDED else 1e-12
        assert same(computed, stored, tolerance), (SETTINGS[number], computed, stored)


@pytest.mark.parametrize("name", golden.CONFIGURATIONS)
def test_plans_at_two_settings(name):
    compare(name, (4, 15))


@pytest.mark.slow
@pytest.mark.parametrize("name", golden.CONFIGURATIONS)
def test_plans_at_all_settings(name):
    compare(name, range(golden.SETTINGS))


@pytest.mark.parametrize("name", golden.CONFIGURATIONS)
def test_seeded_fits(name):
    # Compiled and NumPy kernels add in another order, and what they release may fall to the next
    # point of its grid: the second tolerance is for an intercept that is nearly 0.
    np.testing.assert_allclose(golden.fit_of(name), STORED["fits"][name], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", golden.TABLES)
def test_seeded_fits_of_a_table(name):
    found, stored = golden.table_of(name), STORED["tables"][name]
    assert same(json.loads(json.dumps(found["events"])), stored["events"])
    # Released values are rounded to a grid: sums of other kernels may fall to the next point.
    np.testing.assert_allclose(found["coef"], stored["coef"], rtol=1e-5, atol=1e-7)
    assert [each is None for each in found["std"]] == [each is None for each in stored["std"]]
    pairs = zip(found["std"], stored["std"], strict=True)
    assert all(a == pytest.approx(b, rel=1e-5) for a, b in pairs if b is not None)
