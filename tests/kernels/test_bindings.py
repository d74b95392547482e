"""The bindings survive any call: malformed arguments are refused and nothing outside is touched."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fastmix.kernels import NATIVE

pytestmark = pytest.mark.skipif(not NATIVE, reason="the compiled kernels are not in use")

FUZZER = Path(__file__).with_name("fuzz_bindings.py")


def fuzz(calls, seed):
    """Run the fuzzer in a process of its own, where a crash is an exit code."""
    done = subprocess.run(
        [sys.executable, str(FUZZER), f"--calls={calls}", f"--seed={seed}"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr[-3000:])
    count, outcomes = done.stdout.split(" calls: ")
    assert int(count) >= calls
    assert "ValueError" in outcomes
    assert "TypeError" in outcomes
    assert "returned" in outcomes


def test_thousands_of_malformed_calls():
    fuzz(2_000, seed=1)


def call(name, **changes):
    """Call a kernel with arguments in order but for the changes."""
    from fastmix.kernels import _native

    n, d, p = 6, 2, 3
    common = {"x": np.ones((n, d)), "map": np.ones(4 * d), "factors": np.ones(n), "constant": 1.0}
    own = {
        "fwht": {"x": np.ones((8, d)), "out": np.ones((8, d)), "scale": 1.0},
        "map_rows": {"start": 2, "out": np.ones((4, p), order="F")},
        "squared_norms": {"out": np.ones(n)},
        "gram": {"out": np.ones(p * p)},
        "gradient": {
            "y": np.ones(n), "lower": -1.0, "upper": 1.0, "center": 0.0, "inverse_scale": 1.0,
            "theta": np.ones(p), "clip": 1.0, "out": np.ones(p),
        },
        "moments": {
            "y": np.ones(n), "lower": -1.0, "upper": 1.0, "center": 0.0, "inverse_scale": 1.0,
            "out": np.ones((p + 1) ** 2),
        },
        "slopes": {
            "y": np.ones(n), "lower": -1.0, "upper": 1.0, "center": 0.0, "inverse_scale": 1.0,
            "theta": np.ones(p), "loss": np.ones(6), "lengths": np.empty(0), "high": np.ones(p),
            "low": np.ones(p),
            "excess": np.ones(p * p),
        },
        "curved": {
            "y": np.ones(n), "lower": -1.0, "upper": 1.0, "center": 0.0, "inverse_scale": 1.0,
            "theta": np.ones(p), "loss": np.ones(6), "lengths": np.empty(0), "v": np.ones(p),
            "secant": False,
            "out": np.ones(p),
        },
        "lengths": {
            "y": np.ones(n), "lower": -1.0, "upper": 1.0, "center": 0.0, "inverse_scale": 1.0,
            "transform": np.ones((p + 1) ** 2), "single": False, "hair": 0.0, "speck": 0.0,
            "least": 0.0, "out": np.ones(n),
        },
        "second_moments": {
            "y": np.ones(n), "lower": -1.0, "upper": 1.0, "center": 0.0, "inverse_scale": 1.0,
            "transform": np.ones((p + 1) ** 2), "longest": 1.0, "out": np.ones((p + 1) ** 2),
        },
        "slope_counts": {
            "y": np.ones(n), "lower": -1.0, "upper": 1.0, "center": 0.0, "inverse_scale": 1.0,
            "theta": np.ones(p), "lengths": np.ones(n), "longest": 1.0, "edges": np.arange(4.0),
            "out": np.ones(3),
        },
        "residuals": {
            "y": np.ones(n), "lower": -1.0, "upper": 1.0, "center": 0.0, "inverse_scale": 1.0,
            "theta": np.ones(p), "out": np.ones(n),
        },
        "terms": {
            "y": np.ones(n), "lower": -1.0, "upper": 1.0, "center": 0.0, "inverse_scale": 1.0,
            "theta": np.ones(p), "loss": np.ones(6), "lengths": np.empty(0), "slopes": np.ones(n),
            "bends": np.ones(n),
        },
        "srht": {
            "signs": np.ones(n, dtype=np.int8), "rows": np.array([0, 7, 3]), "n_pad": 8,
            "z": np.ones(3 * p), "distortion": True,
        },
        "kerdock": {
            "signs": np.ones(n, dtype=np.int8), "forms": np.ones(6, dtype=np.uint32), "log_k2": 6,
            "z": np.ones(64 * p),
        },
        "kerdock_sketch": {
            "signs": np.ones(60 + n, dtype=np.int8), "forms": np.ones(12, dtype=np.uint32),
            "log_k2": 6, "offset": 60, "z": np.ones(64 * p),
        },
        "sparse_sketch": {
            "words": np.ones(4 * n, dtype=np.uint32), "s": 4, "k2": 8, "z": np.ones(8 * p),
        },
    }  # fmt: skip
    own["kerdock_distortion"] = own["kerdock_sketch"]
    own["sparse_distortion"] = own["sparse_sketch"]
    first = {} if name == "fwht" else common
    return getattr(_native, name)(**{**first, **own[name], "n_threads": 1, **changes})


KERNELS = [
    "fwht", "map_rows", "squared_norms", "gram", "moments", "gradient", "slopes", "curved", "srht",
    "kerdock", "kerdock_sketch", "kerdock_distortion", "lengths", "second_moments", "slope_counts",
    "residuals", "terms", "sparse_sketch", "sparse_distortion",
]  # fmt: skip


@pytest.mark.parametrize("name", KERNELS)
def test_a_call_in_order(name):
    call(name)
    call(name, n_threads=2**64 - 1)
    call(name, n_threads=0)


REFUSED = [
    ("fwht", {"out": np.ones((4, 2))}, "out must be as large as x"),
    ("fwht", {"x": np.ones((6, 2)), "out": np.ones((6, 2))}, "2\\^k rows"),
    ("fwht", {"x": np.ones((1, 2)), "out": np.ones((1, 2))}, "2\\^k rows"),
    ("map_rows", {"out": np.ones((4, 2), order="F")}, "columns of the mapped array"),
    ("map_rows", {"start": 3}, "stay within x"),
    ("map_rows", {"start": 2**64 - 1}, "stay within x"),
    ("map_rows", {"out": np.ones((4, 3))}, "column-major"),
    ("map_rows", {"out": np.ones((4, 3), order="F")[:, ::-1]}, "not overlap"),
    ("squared_norms", {"out": np.ones(5)}, "n entries"),
    ("squared_norms", {"map": np.ones(7)}, "four rows or none"),
    ("squared_norms", {"factors": np.ones(5)}, "factors must have n entries"),
    ("squared_norms", {"x": np.ones((0, 2))}, "not be empty"),
    ("squared_norms", {"x": np.broadcast_to(1.0, (2**40, 2**15))}, "at most 2\\^50 entries"),
    ("gram", {"out": np.ones(8)}, "p\\^2 entries"),
    ("gram", {"x": np.broadcast_to(1.0, (1, 2**32)), "map": np.ones(0), "out": np.ones(0),
              "factors": np.ones(0), "constant": 0.0}, "2\\^20 columns"),
    ("moments", {"y": np.ones(5)}, "y must have n entries"),
    ("moments", {"out": np.ones(9)}, "\\(p \\+ 1\\)\\^2 entries"),
    ("gradient", {"y": np.ones(5)}, "y must have n entries"),
    ("gradient", {"theta": np.ones(2)}, "p entries"),
    ("gradient", {"out": np.ones(2)}, "p entries"),
    ("slopes", {"y": np.ones(5)}, "y must have n entries"),
    ("slopes", {"theta": np.ones(2)}, "p entries"),
    ("slopes", {"high": np.ones(2)}, "p entries"),
    ("slopes", {"low": np.ones(4)}, "p entries"),
    ("slopes", {"excess": np.ones(8)}, "p\\^2 entries or none"),
    ("slopes", {"loss": np.ones(4)}, "five or six entries"),
    ("slopes", {"lengths": np.ones(5)}, "lengths must have n entries or none"),
    ("curved", {"y": np.ones(5)}, "y must have n entries"),
    ("curved", {"v": np.ones(2)}, "p entries"),
    ("curved", {"out": np.ones(2)}, "p entries"),
    ("curved", {"loss": np.ones(7)}, "five or six entries"),
    ("curved", {"lengths": np.ones(3)}, "lengths must have n entries or none"),
    ("lengths", {"y": np.ones(5)}, "y must have n entries or none"),
    ("lengths", {"y": np.ones(0)}, "p\\^2 entries"),
    ("lengths", {"transform": np.ones(9)}, "p\\^2 entries"),
    ("lengths", {"out": np.ones(5)}, "n entries"),
    ("second_moments", {"y": np.ones(0)}, "y must have n entries"),
    ("second_moments", {"transform": np.ones(9)}, "p\\^2 entries"),
    ("second_moments", {"out": np.ones(9)}, "\\(p \\+ 1\\)\\^2 entries"),
    ("residuals", {"y": np.ones(7)}, "n entries"),
    ("residuals", {"out": np.ones(7)}, "n entries"),
    ("residuals", {"theta": np.ones(2)}, "p entries"),
    ("terms", {"y": np.ones(7)}, "n entries"),
    ("terms", {"slopes": np.ones(7)}, "n entries"),
    ("terms", {"bends": np.ones(5)}, "n entries"),
    ("terms", {"theta": np.ones(2)}, "p entries"),
    ("terms", {"loss": np.ones(7)}, "five or six entries"),
    ("terms", {"lengths": np.ones(3)}, "lengths must have n entries or none"),
    ("slope_counts", {"y": np.ones(7)}, "n entries"),
    ("slope_counts", {"lengths": np.ones(0)}, "n entries"),
    ("slope_counts", {"theta": np.ones(2)}, "p entries"),
    ("slope_counts", {"edges": np.ones(3)}, "one more than out"),
    ("slope_counts", {"out": np.ones(0), "edges": np.ones(1)}, "1 to 4096 entries"),
    ("srht", {"rows": np.array([0, 8, 1])}, "between 0 and n_pad"),
    ("srht", {"rows": np.array([0, -1, 1])}, "between 0 and n_pad"),
    ("srht", {"rows": np.empty(0, dtype=np.int64)}, "1 to 2\\^32 entries"),
    ("srht", {"signs": np.ones(5, dtype=np.int8)}, "signs must have n entries"),
    ("srht", {"n_pad": 6}, "n_pad must be 2\\^k"),
    ("srht", {"n_pad": 4}, "n rounded up"),
    ("srht", {"n_pad": 2**62}, "n rounded up"),
    ("srht", {"z": np.ones(8)}, "k2 p entries"),
    ("kerdock", {"log_k2": 5}, "between 6 and 31"),
    ("kerdock", {"log_k2": 64}, "between 6 and 31"),
    ("kerdock", {"forms": np.ones(7, dtype=np.uint32)}, "log_k2 entries a block"),
    ("kerdock", {"forms": np.ones(0, dtype=np.uint32)}, "all blocks"),
    ("kerdock", {"signs": np.ones(5, dtype=np.int8)}, "offset \\+ n entries"),
    ("kerdock", {"z": np.ones(64)}, "k2 p entries"),
    ("kerdock_sketch", {"offset": 61}, "offset \\+ n entries"),
    ("kerdock_sketch", {"offset": 2**64 - 1}, "offset \\+ n entries"),
    ("kerdock_sketch", {"forms": np.ones(6, dtype=np.uint32)}, "all blocks"),
    ("kerdock_distortion", {"z": np.ones(64 * 3 + 1)}, "k2 p entries"),
    ("sparse_sketch", {"s": 0}, "s must divide k2"),
    ("sparse_sketch", {"s": 3}, "s must divide k2"),
    ("sparse_sketch", {"k2": 0}, "s must divide k2"),
    ("sparse_sketch", {"k2": 2**32}, "s must divide k2"),
    ("sparse_sketch", {"words": np.ones(3, dtype=np.uint32)}, "s entries a row"),
    ("sparse_distortion", {"z": np.ones(7)}, "k2 p entries"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "changes", "message"), REFUSED)
def test_what_would_leave_an_array_is_refused(name, changes, message):
    with pytest.raises(ValueError, match=message):
        call(name, **changes)


@pytest.mark.parametrize("name", KERNELS)
def test_misaligned_memory_is_refused(name):
    raw = np.zeros(8 * 16 + 1, dtype=np.uint8)
    shape = (8, 2) if name == "fwht" else (6, 2)
    count = shape[0] * shape[1]
    x = np.frombuffer(raw.data, dtype=np.float64, offset=1, count=count).reshape(shape)
    with pytest.raises((ValueError, TypeError), match=r"aligned|incompatible"):
        call(name, x=x)
