"""docs/inputs.md, row by row, for every estimator."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import warnings
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

import fastmix
from fastmix import BudgetAccountant, PrivacyLeakWarning
from fastmix.estimators.models import fixing

PAGE = Path(__file__).parents[2] / "docs" / "inputs.md"
MODELS = [
    fastmix.AdaSSP(),
    fastmix.DPGradientDescent(n_steps=3),
    fastmix.FastIHM(n_steps=3),
    fastmix.FastIHM(sketch="dct", n_steps=3),
    fastmix.IHM(n_steps=3),
    fastmix.LinearMixing(),
    fastmix.LinearMixing(fast=True),
    fastmix.ObjectivePerturbation(),
    fixing(fastmix.PrivateLinearRegression, rounds=2)(),
    fastmix.PrivateLinearRegression(),
]
N, D = 40, 3
BOUNDS = {"bounds_X": (-1, 1), "bounds_y": (-1, 1), "delta": 1e-6}


def plain():
    rng = np.random.default_rng(0)
    # Multiples of 2^-6, which every number format below holds exactly.
    return np.rint(64 * rng.uniform(-1, 1, (N, D))) / 64, np.rint(64 * rng.uniform(-1, 1, N)) / 64


def put(array, value):
    changed = array.astype(np.result_type(array, type(value)))
    changed[5] = value
    return changed


def replaced(array, value):
    changed = array.astype(object)
    changed[5] = value
    return changed


def with_text(array):
    return replaced(array, "sEcret")


def mapped(X, path):
    file = np.memmap(path / "X", dtype=X.dtype, mode="w+", shape=X.shape)
    file[:] = X
    file.flush()
    return np.memmap(path / "X", dtype=X.dtype, mode="r", shape=X.shape)


def read_only(X):
    copy = X.copy()
    copy.setflags(write=False)
    return copy


def scattered(X):
    wide = np.zeros((2 * N, 2 * D))
    wide[::2, ::2] = X
    return wide[::2, ::2]


def misaligned(X):
    raw = bytearray(X.nbytes + 1)
    made = np.frombuffer(raw, dtype=X.dtype, offset=1).reshape(X.shape)
    made[:] = X
    return made


#: The data of each row of the page, from ordinary data and a folder.
DATA = {
    "NaN in X": lambda X, y, _: (put(X, np.nan), y),
    "infinity in X": lambda X, y, _: (put(X, np.inf), y),
    "NaN in y": lambda X, y, _: (X, put(y, np.nan)),
    "infinity in y": lambda X, y, _: (X, put(y, -np.inf)),
    "missing values in a table": lambda X, y, _: (pd.DataFrame(put(X, np.nan)).convert_dtypes(), y),
    "text in X": lambda X, y, _: (X.astype(str) + "?", y),
    "text in y": lambda X, y, _: (X, y.astype(str) + "?"),
    "objects that are text": lambda X, y, _: (with_text(X), y),
    "a missing value in a list": lambda X, y, _: (X, replaced(y, None).tolist()),
    "numbers as text in a list": lambda X, y, _: (replaced(X, "0.5").tolist(), y),
    "numbers as text among objects": lambda X, y, _: (X, replaced(y, "0.5")),
    "a date among objects": lambda X, y, _: (X, replaced(y, pd.Timestamp("2020"))),
    "a time span among objects": lambda X, y, _: (replaced(X, np.timedelta64(1, "s")), y),
    "a number beyond the range of float64": lambda X, y, _: (X, replaced(y, 10**400)),
    "a masked value": lambda X, y, _: (np.ma.masked_less(X, 0.0), y),
    "dates in X": lambda X, y, _: (np.zeros((N, D), "M8[s]"), y),
    "time spans in y": lambda X, y, _: (X, np.zeros(N, "m8[s]")),
    "a column of text in a table": lambda X, y, _: (
        pd.DataFrame(X, columns=list("abc")).assign(city="sEcret"),
        y,
    ),
    "a column of objects, one of them text": lambda X, y, _: (
        pd.DataFrame(X, columns=list("abc")).assign(city=replaced(y, "sEcret")),
        y,
    ),
    "objects that are numbers": lambda X, y, _: (X.astype(object), y.astype(object)),
    "decimals and fractions": lambda X, y, _: (
        np.vectorize(Decimal, otypes=[object])(X),
        list(map(Fraction, y)),
    ),
    "a masked array with no masked value": lambda X, y, _: (np.ma.MaskedArray(X), y),
    "complex numbers in X": lambda X, y, _: (X + 1j, y),
    "complex numbers in y": lambda X, y, _: (X, y + 1j),
    "a sparse matrix": lambda X, y, _: (csr_array(X), y),
    "no rows": lambda X, y, _: (X[:0], y[:0]),
    "no columns": lambda X, y, _: (X[:, :0], y),
    "one axis": lambda X, y, _: (X[:, 0], y),
    "three axes": lambda X, y, _: (X[:, :, None], y),
    "two targets": lambda X, y, _: (X, np.column_stack([y, y])),
    "X and y of different length": lambda X, y, _: (X, y[1:]),
    "one row": lambda X, y, _: (X[:1], y[:1]),
    "more columns than rows": lambda X, y, _: (X[:30].reshape(5, 18), y[:5]),
    "values of 1e300 in X": lambda X, y, _: (put(X, 1e300), y),
    "values of 1e300 in y": lambda X, y, _: (X, put(y, -1e300)),
    "denormal values": lambda X, y, _: (put(X, 5e-324), put(y, 5e-324)),
    "rows of zeros": lambda X, y, _: (put(X, 0.0), put(y, 0.0)),
    "nothing but zeros": lambda X, y, _: (0.0 * X, 0.0 * y),
    "a constant column": lambda X, y, _: (np.column_stack([X, np.full(N, 0.5)]), y),
    "collinear columns": lambda X, y, _: (np.column_stack([X, X[:, 0], -X[:, 0]]), y),
    "integers": lambda X, y, _: (np.sign(X).astype(int), np.sign(y).astype(np.int8)),
    "booleans": lambda X, y, _: (X > 0, y > 0),
    "half precision": lambda X, y, _: (X.astype(np.float16), y.astype(np.float16)),
    "long doubles": lambda X, y, _: (X.astype(np.longdouble), y.astype(np.longdouble)),
    "single precision": lambda X, y, _: (X.astype(np.float32), y.astype(np.float32)),
    "swapped byte order": lambda X, y, _: (X.astype(">f8"), y.astype(">f8")),
    "a memory-mapped file": lambda X, y, path: (mapped(X, path), y),
    "a read-only array": lambda X, y, _: (read_only(X), read_only(y)),
    "Fortran order": lambda X, y, _: (np.asfortranarray(X), y),
    "every other row and column of a larger array": lambda X, y, _: (
        scattered(X),
        np.repeat(y, 2)[::2],
    ),
    "reversed axes": lambda X, y, _: (X[::-1, ::-1].copy()[::-1, ::-1], y[::-1].copy()[::-1]),
    "a misaligned array": lambda X, y, _: (misaligned(X), y),
}

PARAMETERS = {
    "epsilon of 0": {"epsilon": 0.0},
    "epsilon below 0": {"epsilon": -1.0},
    "epsilon of NaN": {"epsilon": float("nan")},
    "infinite epsilon": {"epsilon": float("inf")},
    "delta of 0": {"delta": 0.0},
    "delta of 1": {"delta": 1.0},
    "delta below 0": {"delta": -1e-6},
    "delta above 1": {"delta": 1.5},
    "delta of NaN": {"delta": float("nan")},
    "reversed bounds of X": {"bounds_X": ([-1, 1, -1], [1, -1, 1])},
    "reversed bounds of y": {"bounds_y": (1, -1)},
    "NaN in the bounds of X": {"bounds_X": (np.nan, 1)},
    "NaN in the bounds of y": {"bounds_y": (-1, np.nan)},
    "infinite bounds of X": {"bounds_X": (-np.inf, np.inf)},
    "too few bounds of X": {"bounds_X": ([-1, -1], [1, 1])},
    "too many bounds of X": {"bounds_X": ([-1] * 4, [1] * 4)},
    "two lower and two upper bounds of y": {"bounds_y": ([-1, -1], [1, 1])},
    "bounds that are text": {"bounds_X": ("low", "high")},
    "equal bounds of a column": {"bounds_X": ([-1, 0.5, -1], [1, 0.5, 1])},
    "no bounds": {"bounds_X": None, "bounds_y": None},
    "bounds that are numbers as text": {"bounds_X": ("-1", "1")},
    "bounds by name for data without names": {"bounds_X": {"one": (-1, 1)}},
    "an unordered pair of bounds": {"bounds_X": {-1.0, 1.0}},
}


def table(title):
    """Return the rows of one table of the page."""
    section = PAGE.read_text().split(f"## {title}\n")[1].split("\n##")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line[:2] == "| "]
    return rows[1:]


def check(outcome, options, data):
    """Fit all estimators and compare what happens with the page."""
    X, y = plain()
    for model in MODELS:
        budget = BudgetAccountant(float("inf"), 1e-3)
        estimator = clone(model).set_params(**{**BOUNDS, "accountant": budget, **options})
        if outcome.endswith("Error"):
            with pytest.raises((ValueError, TypeError)) as caught:
                estimator.fit(*data)
            assert type(caught.value).__name__ == outcome
            assert "sEcret" not in str(caught.value)
            assert not hasattr(estimator, "coef_")
            assert len(budget) == 0
            continue
        if outcome == "the same fit":
            estimator.set_params(random_state=3)
            other = clone(estimator).fit(X, y)
            np.testing.assert_allclose(estimator.fit(*data).coef_, other.coef_, rtol=1e-9)
        else:
            estimator.fit(*data)
            assert estimator.privacy_.private == (outcome != "a fit, not private")
        assert np.isfinite(estimator.coef_).all()
        assert np.isfinite(estimator.intercept_)


@pytest.mark.parametrize(("name", "outcome"), table("Data"))
def test_data(name, outcome, tmp_path):
    data = DATA[name](*plain(), tmp_path)
    if outcome == "a fit, clipped":
        check("a fit", {}, data)
        clipped = [np.clip(part, -1, 1) for part in data]
        for model in MODELS:
            fits = [
                clone(model).set_params(random_state=3, **BOUNDS).fit(*each).coef_
                for each in (data, clipped)
            ]
            np.testing.assert_allclose(*fits, rtol=1e-9)
    else:
        check(outcome, {}, data)


@pytest.mark.parametrize(("name", "outcome"), table("Parameters"))
def test_parameters(name, outcome):
    with warnings.catch_warnings():
        if name == "no bounds":
            warnings.simplefilter("ignore", PrivacyLeakWarning)
        check(outcome, PARAMETERS[name], plain())


def test_the_page_is_complete():
    assert [name for name, _ in table("Data")] == list(DATA)
    assert [name for name, _ in table("Parameters")] == list(PARAMETERS)


@pytest.mark.parametrize(
    "test", [name for row in table("Faults") for name in re.findall("`(.*?)`", row[2])]
)
def test_the_tests_of_faults_exist(test):
    files = (Path(__file__).parents[1]).rglob("test_*.py")
    assert any(re.search(rf"^def {test}\(", file.read_text(), re.MULTILINE) for file in files)


def test_an_array_that_changes_during_the_fit():
    """In a process of its own, so that a crash is seen: fits go on while another thread writes."""
    program = """
        import threading, time
        import numpy as np, fastmix
        rng = np.random.default_rng(0)
        X, y = rng.uniform(-1, 1, (20_000, 6)), rng.uniform(-1, 1, 20_000)
        stop = threading.Event()
        def scribble():
            values = (0.5, 1e300, -1e300, np.nan, np.inf, 5e-324)
            while not stop.is_set():
                for value in values:
                    X[::7] = value
                    y[::5] = value
        bounds = {"bounds_X": (-1, 1), "bounds_y": (-1, 1), "delta": 1e-6}
        short = {"n_steps": 3}
        models = [(fastmix.AdaSSP, {}), (fastmix.DPGradientDescent, short),
                  (fastmix.FastIHM, short), (fastmix.IHM, short), (fastmix.LinearMixing, {}),
                  (fastmix.PrivateLinearRegression, {})]
        writer = threading.Thread(target=scribble)
        writer.start()
        fits = refused = 0
        try:
            end = time.monotonic() + 1.5
            while time.monotonic() < end:
                for cls, options in models:
                    try:
                        assert np.isfinite(cls(**options, **bounds).fit(X, y).coef_).all()
                        fits += 1
                    except (ValueError, ArithmeticError, np.linalg.LinAlgError):
                        refused += 1
        finally:
            stop.set()
            writer.join()
        print(fits + refused)
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) >= 6
