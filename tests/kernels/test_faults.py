"""Deliberate damage to each kernel: the self-check finds it, and fits are right all the same.

The sources hold ``FASTMIX_FAULT(k, damage)`` at one lane or one entry of each kernel. It is
compiled in only with the option FASTMIX_FAULTS, and done only while number k is switched on.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SOURCES = "".join(path.read_text() for path in sorted((HERE.parents[1] / "native").glob("*.inc")))
FAULTS = sorted(int(k) for k in re.findall(r"FASTMIX_FAULT\((\d+),", SOURCES))
#: Faults of lanes that vectors of an instruction set do not have.
BEYOND = {"baseline": {9, 10}, "avx2": {10}, "avx512": set()}

#: Print, for each instruction set and fault, which kernels fail and which seeded fits differ.
PROBE = """
import json, sys, warnings
import numpy as np
import fastmix
from fastmix.kernels import _trust, kernels_used
from fastmix.kernels._trust import native

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
# So many rows that the blocks of sketches do not fit in the first cache.
X = rng.uniform(-1.0, 1.0, (40_000, 5))
y = np.clip(X @ np.linspace(-0.3, 0.4, 5) + 0.1 * rng.standard_normal(len(X)), -1.0, 1.0)
sizes = {"epsilon": 2.0, "bounds_X": (-1, 1), "random_state": 0}
MODELS = [
    (fastmix.LinearMixing, {"bounds_y": (-1, 1), "fast": True}, y),
    (fastmix.PrivateLinearRegression, {"bounds_y": (-1, 1)}, y),
    (fastmix.PrivateLogisticRegression, {"classes": [0, 1]}, (y > 0.0).astype(int)),
]

def coefficients(fault, trusted=None):
    native.set_fault(fault)
    _trust._trusted = trusted
    return [np.ravel(make(**sizes, **own).fit(X, t).coef_) for make, own, t in MODELS]

found = {}
for name in native.instruction_sets():
    native.choose(name)
    right = coefficients(0)
    assert kernels_used()["check"] == "passed"
    # Without the self-check, faults reach the coefficients.
    for fault, fit in ((7, 0), (17, 1), (36, 2)):
        assert not np.allclose(coefficients(fault, _trust._compiled)[fit], right[fit])
    for fault in map(int, sys.argv[1:]):
        fits = coefficients(fault)
        close = [bool(np.allclose(a, b, rtol=1e-6, atol=1e-9)) for a, b in zip(fits, right)]
        found[f"{name} {fault}"] = kernels_used()["numpy"], close
        print(name, fault, kernels_used()["numpy"], file=sys.stderr)
print(json.dumps(found))
"""


def test_every_kernel_has_faults():
    """A number names one fault; the next test is about all of them."""
    assert list(range(1, 82)) == FAULTS


@pytest.mark.slow
def test_each_fault_is_caught_and_fits_are_right():
    sys.path.insert(0, str(HERE))
    import compilers

    built = compilers.build("c++", "-O1", "-DFASTMIX_FAULTS=ON")
    assert built is not None, "the build with faults failed"
    own = compilers.environment(built, "")
    command = [sys.executable, "-c", PROBE, *map(str, FAULTS)]
    run = subprocess.run(command, env=own, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    for key, (failed, close) in found.items():
        name, _, fault = key.partition(" ")
        assert bool(failed) == (int(fault) not in BEYOND[name]), (
            f"fault {fault} in {name}: {failed}"
        )
        assert all(close), f"fault {fault} in {name} changed a fit"
    assert len(found) >= len(FAULTS)
