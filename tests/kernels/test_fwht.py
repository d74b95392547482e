from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import hadamard

from fastmix.kernels import NATIVE, fwht, reference

DTYPES = [np.float64, np.float32]
# The name of a layout, and how to get an n x d matrix that has it.
LAYOUTS = {
    "C": lambda big, n, d: np.ascontiguousarray(big[:n, :d]),
    "F": lambda big, n, d: np.asfortranarray(big[:n, :d]),
    "C rows cut": lambda big, n, d: big[:n, :d],
    "C rows skipped": lambda big, n, d: np.ascontiguousarray(big[:, :d])[::2],
    "C columns skipped": lambda big, n, d: big[:n, ::2],
    "F rows skipped": lambda big, n, d: np.asfortranarray(big)[::2, :d],
    "F columns skipped": lambda big, n, d: np.asfortranarray(big[:n])[:, ::2],
    "both reversed": lambda big, n, d: big[n - 1 :: -1, d - 1 :: -1],
    "F reversed": lambda big, n, d: np.asfortranarray(big)[n - 1 :: -1, :d],
    "broadcast": lambda big, n, d: np.broadcast_to(big[:n, :1], (n, d)),
}


def matrix(n: int, d: int, dtype: type, layout: str = "C", seed: int = 0) -> np.ndarray:
    big = np.random.default_rng(seed).standard_normal((2 * n, 2 * d)).astype(dtype)
    return LAYOUTS[layout](big, n, d)


def expected(x: np.ndarray, norm: str | None = "ortho") -> np.ndarray:
    """Transform the columns of a matrix with the oracle."""
    out = np.empty(x.shape, x.dtype)
    reference.fwht(x, out, 1.0 if norm is None else 1.0 / np.sqrt(len(x)))
    return out


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 4, 8, 32, 128])
@pytest.mark.parametrize("norm", ["ortho", None])
def test_is_the_hadamard_matrix(n, norm, dtype):
    x = matrix(n, 3, dtype)
    dense = hadamard(n) / (1.0 if norm is None else np.sqrt(n))
    tolerance = 16 * np.finfo(dtype).eps * np.sqrt(n)
    np.testing.assert_allclose(fwht(x, norm=norm), dense @ x, atol=tolerance * np.sqrt(n))
    np.testing.assert_allclose(expected(x, norm), dense @ x, atol=tolerance * np.sqrt(n))


# Sizes meet every way of cutting: inside a vector, in the first cache, in one tile, in two passes.
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("n", "d"),
    [
        *[(2, 1), (2, 70), (4, 3), (8, 2), (8, 4), (16, 8), (32, 1), (64, 65), (256, 5), (1024, 3)],
        *[(2**13, 1), (2**13, 7), (2**11, 125), (16, 2500), (2**17, 2), (2**18, 1)],
    ],
)
def test_equals_the_reference_bit_for_bit(n, d, layout, dtype):
    x = matrix(n, d, dtype, layout)
    want = expected(x)
    np.testing.assert_array_equal(fwht(x), want)
    for other in ("C", "F", "C rows cut", "both reversed"):
        out = matrix(n, d, dtype, other, seed=1)
        assert fwht(x, out=out) is out
        np.testing.assert_array_equal(out, want)
    if x.flags.writeable:
        assert fwht(x, out=x) is x
        np.testing.assert_array_equal(x, want)


@pytest.mark.parametrize("shape", [(2**12, 1000), (2**20, 3), (4, 70000)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_large_shapes_in_several_passes(shape, order):
    x = np.asarray(matrix(*shape, np.float32), order=order)
    np.testing.assert_array_equal(fwht(x, norm=None), expected(x, None))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("step", [1, 3, -1, -2])
@pytest.mark.parametrize("n", [1, 2, 16, 2**12])
def test_vectors(n, step, dtype):
    x = np.random.default_rng(0).standard_normal(n * abs(step)).astype(dtype)[::step]
    want = expected(x[:, np.newaxis])[:, 0]
    np.testing.assert_array_equal(fwht(x), want)
    np.testing.assert_array_equal(fwht(x, out=x), want)


def test_length_one_is_the_identity():
    x = matrix(1, 5, np.float64)
    out = fwht(x)
    np.testing.assert_array_equal(out, x)
    assert not np.shares_memory(out, x)


@pytest.mark.parametrize("order", ["C", "F"])
def test_new_result_keeps_the_order_and_leaves_the_input(order):
    x = np.asarray(matrix(64, 5, np.float64), order=order)
    before = x.copy()
    out = fwht(x)
    assert out.flags[f"{order}_CONTIGUOUS"]
    np.testing.assert_array_equal(x, before)


def test_accepts_sequences_and_read_only_input():
    np.testing.assert_array_equal(fwht([1.0, 2.0], norm=None), [3.0, -1.0])
    x = matrix(8, 2, np.float64)
    want = expected(x)
    x.flags.writeable = False
    np.testing.assert_array_equal(fwht(x), want)


def test_elements_that_are_not_whole_steps_apart():
    records = np.zeros(64, dtype=[("tag", "u1"), ("value", "f8")])
    records["value"] = np.random.default_rng(0).standard_normal(64)
    want = expected(records["value"][:, np.newaxis])[:, 0]
    np.testing.assert_array_equal(fwht(records["value"]), want)
    fwht(records["value"], out=records["value"])
    np.testing.assert_array_equal(records["value"], want)


def test_interleaved_output_does_not_overlap():
    both = matrix(32, 4, np.float64)
    want = expected(both[:, ::2])
    fwht(both[:, ::2], out=both[:, 1::2])
    np.testing.assert_array_equal(both[:, 1::2], want)


def test_nan_stays_in_its_column():
    x = matrix(256, 6, np.float64)
    x[17, 2] = np.nan
    out = fwht(x)
    assert np.isnan(out[:, 2]).all()
    assert np.isfinite(np.delete(out, 2, axis=1)).all()


matrices = st.tuples(st.integers(0, 9), st.integers(1, 9), st.integers(0, 2**32 - 1)).map(
    lambda t: np.random.default_rng(t[2]).standard_normal((2, 2 ** t[0], t[1]))
)


@given(matrices)
def test_is_its_own_inverse(pair):
    x = pair[0]
    np.testing.assert_allclose(fwht(fwht(x)), x, atol=1e-13)
    np.testing.assert_allclose(np.linalg.norm(fwht(x), axis=0), np.linalg.norm(x, axis=0))


@given(matrices, st.floats(-8, 8), st.floats(-8, 8))
@settings(deadline=None)
def test_is_linear(pair, a, b):
    x, y = pair
    np.testing.assert_allclose(fwht(a * x + b * y), a * fwht(x) + b * fwht(y), atol=1e-11)


@pytest.mark.parametrize(("n", "d"), [(2**18, 1), (2**16, 11), (2**14, 90), (2**10, 1500)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_does_not_depend_on_the_number_of_threads(n, d, order, monkeypatch):
    x = np.asarray(matrix(n, d, np.float64), order=order)
    one = None
    for threads in ("1", "2", "3", "8", ""):
        monkeypatch.setenv("FASTMIX_NUM_THREADS", threads)
        one = fwht(x) if one is None else one
        np.testing.assert_array_equal(fwht(x), one)


def test_calls_from_several_threads():
    inputs = [matrix(2**14, 20, np.float64, seed=k) for k in range(6)]
    wanted = [expected(x) for x in inputs]
    with ThreadPoolExecutor(6) as pool:
        for _ in range(3):
            for got, want in zip(pool.map(fwht, inputs), wanted, strict=True):
                np.testing.assert_array_equal(got, want)


X = matrix(8, 4, np.float64)


@pytest.mark.parametrize(
    ("x", "out", "message"),
    [
        (X.astype(np.int64), None, "x must have dtype float64 or float32; got x=array of shape (8"),
        (X.astype(X.dtype.newbyteorder()), None, "x must have dtype float64 or float32"),
        (np.float64(3.0), None, "x must have one or two axes"),
        (np.zeros((2, 2, 2)), None, "x must have one or two axes"),
        (np.zeros((8, 0)), None, "x must have one or two axes"),
        (np.zeros(6), None, "x must have one or two axes, and a power of two as its length"),
        (X, X.T, "out must have the dtype and the shape of x; got out=array of shape (4, 8)"),
        (X, X.astype(np.float32), "out must have the dtype and the shape of x"),
    ],
)
def test_errors(x, out, message):
    with pytest.raises((TypeError, ValueError)) as caught:
        fwht(x, out=out)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("value", "native"), [("1", False), ("yes", False), ("0", NATIVE), ("", NATIVE)]
)
def test_environment_chooses_the_kernel(value, native):
    if value in ("0", "") and "FASTMIX_NO_NATIVE" in os.environ:
        pytest.skip("NATIVE was decided by the environment of this process")
    code = (
        "import numpy as np, fastmix.kernels as k;"
        "x = np.random.default_rng(0).standard_normal((64, 3));"
        "print(k.NATIVE, k.fwht(x).tobytes().hex())"
    )
    environment = {**os.environ, "FASTMIX_NO_NATIVE": value}
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    here = fwht(np.random.default_rng(0).standard_normal((64, 3))).tobytes().hex()
    assert run.stdout.split() == [str(native), here]
