"""Compiled kernels are compared with NumPy before they are trusted."""

from __future__ import annotations

import multiprocessing
import os
import re
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from fastmix.errors import KernelWarning
from fastmix.kernels import NATIVE, _selfcheck, _trust, fwht, kernels_used, mapped, reference
from fastmix.kernels.losses import CalibratedHuber
from fastmix.kernels.mapped import Mapped, Targets

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(not NATIVE, reason="the compiled kernels are not in use")


@pytest.fixture
def unchecked(monkeypatch):
    """Forget the self-check of this process for a test."""
    monkeypatch.setattr(_trust, "_trusted", None)


def wrong(name):
    """Return a kernel that changes the first entry of its last array, as damaged code would."""
    right = _trust._compiled[name]

    def run(*arguments):
        result = right(*arguments)
        out = [a for a in arguments if isinstance(a, np.ndarray) and a.flags.writeable][-1]
        out[(0,) * out.ndim] += 1.0
        return result

    return run


def test_the_kernels_of_this_machine_pass():
    assert _selfcheck.failures(_trust.KERNELS) == []
    assert kernels_used()["check"] == "passed"
    assert kernels_used()["numpy"] == []


@pytest.mark.parametrize("copy", ["baseline", "avx2", "avx512"])
def test_every_copy_of_this_processor_passes(copy):
    native, before = _trust.native, _trust.native.chosen()
    if copy not in native.instruction_sets():
        with pytest.raises(ValueError, match="processor"):
            native.choose(copy)
        pytest.skip(f"this processor does not have {copy}")
    try:
        native.choose(copy)
        assert native.chosen() == copy
        assert _selfcheck.failures(_trust.KERNELS) == []
    finally:
        native.choose(before)


@pytest.mark.parametrize("name", ["fwht", "gram", "map_rows", "squared_norms", "residuals"])
def test_a_wrong_kernel_is_replaced_with_one_warning(name, unchecked, monkeypatch):
    monkeypatch.setitem(_trust._compiled, name, wrong(name))
    with pytest.warns(KernelWarning) as caught:
        used = kernels_used()
    (message,) = [str(warning.message) for warning in caught]
    for part in (
        name,
        _trust.processor(),
        used["compiler"],
        used["instruction_set"],
        "FASTMIX_ISA",
    ):
        assert part in message
    assert used["check"] == "failed"
    assert name in used["numpy"]
    assert {*used["numpy"]} >= {"srht", "kerdock"}  # they run the code of each of these
    assert ("fwht" in used["numpy"]) == (name == "fwht")
    rng = np.random.default_rng(0)
    x, y, theta = rng.standard_normal((64, 3)), Targets(rng.standard_normal(64)), np.ones(3)
    A, want = Mapped(x), np.empty_like(x)
    reference.fwht(x, want, 0.125)
    np.testing.assert_array_equal(fwht(x), want)
    np.testing.assert_allclose(mapped.gram(A), reference.gram(A))
    np.testing.assert_allclose(mapped.map_rows(A, 0, 64), x)
    np.testing.assert_allclose(mapped.squared_norms(A), reference.squared_norms(A))
    np.testing.assert_allclose(mapped.residuals(A, y, theta), reference.residuals(A, y, theta))


def test_the_error_of_sums_is_that_of_the_kernel_in_use(unchecked, monkeypatch):
    def raises(*arguments):
        raise RuntimeError

    monkeypatch.setitem(_trust._compiled, "slopes", raises)
    with pytest.warns(KernelWarning, match="slopes"):
        assert mapped.summation_error(CalibratedHuber(1.0, 2.0, 1.0)) == reference.SUMMATION_ERROR


def test_threads_check_once(unchecked, monkeypatch):
    runs, starts = [], threading.Barrier(8)

    def failures(names):
        runs.append(threading.get_ident())
        return ["gram"]

    monkeypatch.setattr(_selfcheck, "failures", failures)

    def use(_):
        starts.wait()
        return _trust.kernel("gram"), _trust.kernel("fwht")

    with warnings.catch_warnings(record=True) as caught, ThreadPoolExecutor(8) as pool:
        warnings.simplefilter("always")
        found = list(pool.map(use, range(8)))
    assert len(runs) == 1
    assert len([w for w in caught if w.category is KernelWarning]) == 1
    assert set(found) == {(None, _trust._compiled["fwht"])}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_does_not_wait_for_a_check_of_its_parent(unchecked):
    """Another thread of the parent holds the lock while the child is made."""
    with _trust._lock, multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(kernels_used).get(timeout=60)["check"] == "passed"


@pytest.mark.parametrize(
    ("value", "chosen"), [("baseline", "baseline"), ("", None), ("sse9", None)]
)
def test_the_environment_chooses_the_instruction_set(value, chosen):
    code = "from fastmix.kernels import kernels_used; print(kernels_used()['instruction_set'])"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "FASTMIX_ISA": value, "FASTMIX_NO_NATIVE": ""},
        capture_output=True,
        text=True,
    )
    if value == "sse9":
        assert run.returncode != 0
        assert "FASTMIX_ISA must name an instruction set of this processor (baseline" in run.stderr
    else:
        assert run.stdout.split() == [chosen or _trust.native.instruction_sets()[-1]]


@pytest.mark.parametrize(("without", "code"), [("", 0), ("1", 1)])
def test_the_check_from_the_command_line(without, code):
    run = subprocess.run(
        [sys.executable, "-m", "fastmix.kernels"],
        env={**os.environ, "FASTMIX_NO_NATIVE": without},
        capture_output=True,
        text=True,
    )
    assert run.returncode == code
    assert ("check: passed" in run.stdout) == (code == 0)
    assert ("kernels: NumPy" in run.stdout) == (code == 1)


def test_sources_keep_to_the_rules_of_the_page_on_kernels():
    sources = {path.name: path.read_text() for path in (ROOT / "native").iterdir()}
    asks = [name for name, text in sources.items() if "__builtin_cpu_supports" in text]
    assert asks == ["isa.hpp"]
    for name, text in sources.items():
        # A vector made of single lanes of another: g++ 12 gets them wrong.
        assert not re.search(r"\{\s*\w+\[[^\]]*\]\.\.\.", text), name
