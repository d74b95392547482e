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


def same(computed, stored):
    """Compare nested values; numbers to 1e-12."""
    if isinstance(stored, list | dict):
        keys = range(len(stored)) if isinstance(stored, list) else stored
        return len(computed) == len(stored) and all(same(computed[k], stored[k]) for k in keys)
    if isinstance(stored, float):
        return computed == pytest.approx(stored, rel=1e-12, abs=0.0)
    return computed == stored


def compare(name, numbers):
    for number in numbers:
        computed = json.loads(json.dumps(golden.plan_of(name, *SETTINGS[number])))
        stored = STORED["plans"][name][number]
        assert same(computed, stored), (SETTINGS[number], computed, stored)


@pytest.mark.parametrize("name", golden.CONFIGURATIONS)
def test_plans_at_two_settings(name):
    compare(name, (4, 15))


@pytest.mark.slow
@pytest.mark.parametrize("name", golden.CONFIGURATIONS)
def test_plans_at_all_settings(name):
    compare(name, range(golden.SETTINGS))


@pytest.mark.parametrize("name", golden.CONFIGURATIONS)
def test_seeded_fits(name):
    # Compiled and NumPy kernels add in another order.
    np.testing.assert_allclose(golden.fit_of(name), STORED["fits"][name], rtol=1e-8)
