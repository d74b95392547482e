"""Malformed data of every kind: refused before a charge, or fitted to finite coefficients.

Cases are generated: an estimator, a container for X and one for y, and a fault at a random place.
No error, warning or output may tell a value; two canaries are in all data, a number and a text.
"""

from __future__ import annotations

import contextlib
import datetime
import decimal
import fractions
import io
import math
import traceback
import warnings
from collections import Counter, defaultdict

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

import fastmix
from fastmix import BudgetAccountant
from fastmix.errors import InvalidValueError
from fastmix.estimators.models import fixing

NUMBER, TEXT = 61.2345678, "Rumpelstilzchen"
N, D = 12, 3
NAMES = ["one", "two", "three"]
BOUNDS = {"bounds_X": (-100, 100), "bounds_y": (-100, 100), "delta": 1e-6}
MODELS = [
    fastmix.AdaSSP(),
    fastmix.AdaSSP(inference=True),
    fastmix.DPGradientDescent(n_steps=3),
    fastmix.FastIHM(n_steps=3),
    fastmix.FastIHM(n_steps=3, sketch="dct"),
    fastmix.FastIHM(n_steps=3, variant="paper"),
    fastmix.IHM(n_steps=3),
    fastmix.IHM(n_steps=3, variant="paper"),
    fastmix.LinearMixing(),
    fastmix.LinearMixing(fast=True),
    fastmix.PrivateLinearRegression(),
    fastmix.ObjectivePerturbation(),
    fixing(fastmix.PrivateLinearRegression, rounds=2)(),
    fastmix.ObjectivePerturbation(solver="sketch"),
]
#: Those that can read blocks of rows.
IN_BLOCKS = [0, 1, 2, 3, 6, 8, 10, 11, 12]

BAD = [
    None, math.nan, math.inf, -math.inf, TEXT, "0.5", "nan", b"0.5", bytearray(b"1"), 1j,
    np.complex128(1), datetime.datetime(2020, 1, 1), datetime.date(2020, 1, 1), datetime.time(1),
    datetime.timedelta(1), np.datetime64("2020"), np.datetime64("NaT"), np.timedelta64(3, "s"),
    np.timedelta64("NaT"), pd.NaT, pd.NA, pd.Timestamp("2020"), 10**400, -(10**400),
    decimal.Decimal("NaN"), decimal.Decimal("sNaN"), decimal.Decimal("-Infinity"),
    fractions.Fraction(10**400), np.longdouble("1e4000"), object(), {"a": 1.0}, {1.0}, [0.5],
    np.array([0.5, 0.25]), np.ma.masked, Ellipsis, NotImplemented, type, len, NAMES,
]  # fmt: skip
GOOD = [
    0, 1, -3, 0.5, True, False, np.True_, np.float16(0.5), np.float32(0.25), np.int8(3),
    np.uint64(7), np.longdouble(0.5), 5e-324, 1e300, -1e300, 10**30, decimal.Decimal("0.25"),
    fractions.Fraction(1, 3),
]  # fmt: skip


class ImpossibleError(Exception):
    """The container cannot hold the fault, or makes an ordinary number of it."""


def objects(rows):
    array = np.empty((len(rows), len(rows[0])), dtype=object)
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            array[i, j] = value
    return array


def numbers(rows, dtype=np.float64):
    plain = (float, int, np.bool_, np.floating, decimal.Decimal, fractions.Fraction, type(None))
    if not all(isinstance(value, plain) for row in rows for value in row):
        raise ImpossibleError  # NumPy would make an ordinary number of it
    return np.array(rows, dtype=dtype)


def masked(rows):
    mask = [[not isinstance(v, float) or math.isnan(v) for v in row] for row in rows]
    plain = [
        [0.5 if m else v for v, m in zip(*each, strict=True)]
        for each in zip(rows, mask, strict=True)
    ]
    return np.ma.MaskedArray(plain, mask=mask)


def mapped(rows, path):
    array = numbers(rows)
    file = path / f"map {array.shape[1]}"
    array.tofile(file)
    return np.memmap(file, dtype=array.dtype, mode="r", shape=array.shape)


def frame(rows, **options):
    return pd.DataFrame(rows, columns=NAMES[: len(rows[0])], **options)


def polars(rows):
    simple = (float, str, bool, type(None))
    if not all(type(value) in simple for row in rows for value in row):
        raise ImpossibleError  # Polars itself panics
    return pl.DataFrame(rows, schema=NAMES[: len(rows[0])], orient="row")


def blocks_of_one(rows):
    return da.from_array(numbers(rows), chunks=(1, 1))


def partitions(rows):
    return dd.from_pandas(frame(numbers(rows).tolist()), npartitions=5)


#: Containers of a table, from rows that are lists and a folder.
TABLES = {
    "lists": lambda rows, _: rows,
    "tuples": lambda rows, _: tuple(map(tuple, rows)),
    "list of arrays": lambda rows, _: [np.asarray(row) for row in rows],
    "objects": lambda rows, _: objects(rows),
    "Fortran objects": lambda rows, _: np.asfortranarray(objects(rows)),
    "inferred": lambda rows, _: np.array(rows),
    "float64": lambda rows, _: numbers(rows),
    "Fortran": lambda rows, _: np.asfortranarray(numbers(rows)),
    "long double": lambda rows, _: numbers(rows, np.longdouble),
    "masked": lambda rows, _: masked(rows),
    "list of masked": lambda rows, _: list(masked(rows)),
    "memory map": mapped,
    "pandas": lambda rows, _: frame(rows),
    "pandas without names": lambda rows, _: pd.DataFrame(rows),
    "pandas objects": lambda rows, _: frame(rows, dtype=object),
    "pandas nullable": lambda rows, _: frame(rows).convert_dtypes(),
    "pandas on Arrow": lambda rows, _: frame(rows).convert_dtypes(dtype_backend="pyarrow"),
    "pandas category": lambda rows, _: frame(rows).astype("category"),
    "Polars": lambda rows, _: polars(rows),
    "Arrow": lambda rows, _: pa.Table.from_pandas(frame(rows)),
    "Arrow batch": lambda rows, _: pa.RecordBatch.from_pandas(frame(rows)),
}  # fmt: skip
LAZY = {"Dask": lambda rows, _: blocks_of_one(rows), "Dask frame": lambda rows, _: partitions(rows)}


def column(kind, values, path):
    """Return targets in a container."""
    table = TABLES[kind]([[value] for value in values], path)
    if kind in ("lists", "tuples"):
        return [row[0] for row in table] if kind == "lists" else tuple(row[0] for row in table)
    if kind.startswith("list of"):
        return [row[0] for row in table]
    if isinstance(table, np.ndarray):
        return table[:, 0]
    if isinstance(table, pd.DataFrame):
        return table.iloc[:, 0]
    return table[NAMES[0]]


#: Faults of structure, from ordinary data.
STRUCTURES = {
    "short y": lambda X, y: (X, y[:-1]),
    "no y": lambda X, y: (X, None),
    "no X": lambda X, y: (None, y),
    "no rows": lambda X, y: (X[:0], y[:0]),
    "no columns": lambda X, y: (X[:, :0], y),
    "one axis": lambda X, y: (X[:, 0], y),
    "three axes": lambda X, y: (X[:, :, None], y),
    "two targets": lambda X, y: (X, np.column_stack([y, y])),
    "ragged": lambda X, y: ([[NUMBER], *X[1:].tolist()], y),
    "ragged y": lambda X, y: (X, [[NUMBER, NUMBER], *y[1:].tolist()]),
    "sparse": lambda X, y: (csr_array(X), y),
    "sparse y": lambda X, y: (X, csr_array(y[:, None])),
    "text": lambda X, y: (TEXT, y),
    "text for y": lambda X, y: (X, TEXT),
    "a number": lambda X, y: (NUMBER, y),
    "a dict": lambda X, y: ({NAMES[j]: X[:, j] for j in range(D)}, y),
    "records": lambda X, y: (np.array(list(map(tuple, X)), dtype="f8,f8,f8"), y),
    "dates": lambda X, y: (frame(X.tolist()).assign(two=pd.Timestamp("2020")), y),
    "time spans": lambda X, y: (X, np.arange(N).astype("m8[s]")),
    "column of text": lambda X, y: (frame(X.tolist()).assign(two=TEXT), y),
    "nothing in a column": lambda X, y: (frame(X.tolist()).assign(two=None), y),
    "Polars dates": lambda X, y: (
        pl.DataFrame(X, schema=NAMES).with_columns(two=pl.date(2020, 1, 1)), y,
    ),
    "a generator": lambda X, y: ((row for row in X), y),
    "NumPy text": lambda X, y: (X.astype(str), y),
    "NumPy text y": lambda X, y: (X, y.astype(str)),
}  # fmt: skip


def ordinary(rng):
    X, y = rng.uniform(-1, 1, (N, D)), rng.uniform(-1, 1, N)
    X[0, 0], y[0] = NUMBER, NUMBER
    return X, y


def generate(rng, path):
    """Return a model, its data, whether they must be refused, and a key for the message."""
    X, y = ordinary(rng)
    model = MODELS[rng.integers(len(MODELS))]
    if rng.random() < 0.15:
        name = rng.choice(list(STRUCTURES))
        return model, STRUCTURES[name](X, y), True, None
    lazy = rng.random() < 0.08
    kinds = list(LAZY if lazy else TABLES)
    kind, other = rng.choice(kinds), rng.choice(list(TABLES))
    if lazy:
        model = MODELS[rng.choice(IN_BLOCKS)]
        other = "float64" if kind == "Dask" else "pandas"
    rows, values = X.tolist(), y.tolist()
    bad = rng.random() < 0.8
    pool = BAD if bad else GOOD
    fault = pool[rng.integers(len(pool))]
    # The first record keeps the canary.
    in_y = rng.random() < 0.5
    if in_y:
        values[rng.integers(1, N)] = fault
    else:
        rows[rng.integers(1, N)][rng.integers(D)] = fault
    place = other if in_y else kind
    if place in ("masked", "list of masked") and not isinstance(fault, float):
        bad = True  # what is no float is masked
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data = (LAZY if lazy else TABLES)[kind](rows, path), column(other, values, path)
            if kind == "Dask frame":
                values = numbers([values])[0]
                data = data[0], dd.from_pandas(pd.Series(values), npartitions=5)
    except (
        ImpossibleError,
        TypeError,
        ValueError,
        OverflowError,
        ArithmeticError,
        pa.ArrowException,
    ):
        raise ImpossibleError from None
    except pl.exceptions.PolarsError:
        raise ImpossibleError from None
    # Of these containers no type depends on what is in them.
    steady = {"lists", "tuples", "objects", "Fortran objects", "float64", "Fortran", "memory map"}
    return model, data, bad, "one" if {kind, other} <= steady and bad else None


def chain(error):
    """Yield an error and all that it carries."""
    seen = set()
    waiting = [error]
    while waiting:
        each = waiting.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            yield each
            waiting += [each.__cause__, each.__context__]


def told(error, data):
    """Return all that loggers print of an error, and single values in the frames of fastmix."""
    parts = ["".join(traceback.format_exception(error))]
    for each in chain(error):
        parts += [str(each), repr(each.args), repr(getattr(each, "__notes__", ""))]
        for inside, _ in traceback.walk_tb(each.__traceback__):
            if "fastmix/" in inside.f_code.co_filename:
                kept = [v for v in inside.f_locals.values() if not any(v is d for d in data)]
                parts += [repr(v) for v in kept if isinstance(v, (str, bytes, float, np.generic))]
    return "\n".join(parts)


def check(model, data, refused):
    """Fit, and return the message of the refusal; nothing may be charged, or told, in vain."""
    budget = BudgetAccountant(100.0, 1e-2)
    estimator = clone(model).set_params(accountant=budget, **BOUNDS)
    heard = io.StringIO()
    error = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with contextlib.redirect_stdout(heard), contextlib.redirect_stderr(heard):
            try:
                estimator.fit(*data)
            except (ValueError, TypeError) as raised:
                error = raised
    said = heard.getvalue() + "".join(str(w.message) for w in caught)
    if error is not None:
        said += told(error, data)
        # Source lines of this file are in the traceback, and none of them holds a canary.
        assert len(budget.charges) == 0
        assert not hasattr(estimator, "coef_")
        assert not hasattr(estimator, "n_features_in_")
    assert TEXT not in said, said
    assert "61.234" not in said, said
    if error is None:
        assert not refused, "malformed data were fitted"
        assert np.isfinite(estimator.coef_).all()
        assert math.isfinite(estimator.intercept_)
        (charge,) = budget.charges
        assert charge.spent == estimator.privacy_.spent
        assert estimator.privacy_.private
        assert estimator.privacy_.data["n_samples"] == N
        assert estimator.privacy_.data["n_features"] == len(estimator.coef_) == D
        return None
    assert refused, f"ordinary data were refused: {error}"
    return type(error).__name__, str(error)


def run(count, seed, path):
    """Check generated cases; return how many were refused, and by which error."""
    rng = np.random.default_rng(seed)
    outcomes, messages = Counter(), defaultdict(set)
    done = 0
    with dask.config.set(scheduler="synchronous"):
        while done < count:
            try:
                model, data, refused, key = generate(rng, path)
            except ImpossibleError:
                continue
            message = check(model, data, refused)
            outcomes["fitted" if message is None else message[0]] += 1
            if key:
                messages[key].add(message)
            done += 1
    assert messages["one"] == {("InvalidValueError", InvalidValueError.MESSAGE)}
    return outcomes


def test_malformed_data(tmp_path):
    outcomes = run(300, 0, tmp_path)
    assert outcomes["fitted"] > 20
    assert outcomes["InvalidValueError"] > 150


@pytest.mark.slow
def test_ten_thousand_malformed_data(tmp_path):
    outcomes = run(10_000, 1, tmp_path)
    print(dict(outcomes))
    assert sum(outcomes.values()) == 10_000
    assert outcomes["InvalidValueError"] > 5_000
