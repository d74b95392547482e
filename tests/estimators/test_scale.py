"""Fits of data that are not in memory: the same result as in memory, and the same rules."""

import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastmix
from fastmix import BudgetAccountant
from fastmix.data import ArrayChunk, Chunk, Chunks
from fastmix.datasets import make_correlated
from fastmix.errors import BudgetError, InvalidValueError
from fastmix.show.progress import progress

N, D = 5000, 6
BOUNDS = {"bounds_X": (-8.0, 8.0), "bounds_y": (-12.0, 12.0)}
NAMES = [f"x{j}" for j in range(D)]
METHODS = [
    fastmix.IHM,
    fastmix.FastIHM,
    fastmix.AdaSSP,
    fastmix.PrivateLinearRegression,
    fastmix.DPGradientDescent,
    fastmix.LinearMixing,
]


@pytest.fixture(scope="module")
def data():
    return make_correlated(N, D, random_state=0)


@pytest.fixture
def parquet(data, tmp_path):
    X, y = data
    table = pa.table([*X.T, y], names=[*NAMES, "y"])
    pq.write_table(table, tmp_path / "all.parquet", row_group_size=777)
    return tmp_path / "all.parquet"


def mapped(array, path):
    np.save(path, array)
    return np.load(path, mmap_mode="r")


def sources(data, parquet):
    """Yield fits of the same data from everywhere."""
    import dask.array as da
    import dask.dataframe as dd

    X, y = data
    yield lambda model: model.fit_parquet(parquet)
    yield lambda model: model.fit(mapped(X, parquet.parent / "x.npy"), y)
    yield lambda model: model.fit(
        mapped(np.asfortranarray(X), parquet.parent / "f.npy"), mapped(y, parquet.parent / "y.npy")
    )
    yield lambda model: model.fit(da.from_array(X, chunks=(1000, 4)), da.from_array(y, chunks=999))
    yield lambda model: model.fit(da.from_array(X, chunks=(1234, D)), y)
    frame = dd.read_parquet(parquet, blocksize=None, split_row_groups=2)
    yield lambda model: model.fit(frame[NAMES], frame["y"])
    yield lambda model: model.fit(frame[NAMES], frame[["y"]])


# Dask's reader uses what pandas is about to drop.
@pytest.mark.filterwarnings("ignore:The inplace keyword")
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_the_result_is_that_in_memory(method, data, parquet):
    parameters = {"epsilon": 1.0, "random_state": 3, **BOUNDS}
    if method()._resolve().infers:
        parameters["inference"] = True
    expected = method(**parameters).fit(*data)
    size = np.abs(expected.coef_).max()
    for fit in sources(data, parquet):
        model = fit(method(**parameters))
        np.testing.assert_allclose(model.coef_, expected.coef_, rtol=0, atol=1e-9 * size)
        assert model.intercept_ == pytest.approx(expected.intercept_, abs=1e-9 * size)
        assert model.privacy_.spent == expected.privacy_.spent
        assert model.privacy_.data == expected.privacy_.data
        assert model.n_features_in_ == D
        if "inference" in parameters:
            np.testing.assert_allclose(model.coef_std_, expected.coef_std_, rtol=1e-9)


def test_names_of_features(data, parquet):
    import pandas as pd

    model = fastmix.IHM(**BOUNDS, random_state=0).fit_parquet(parquet, features=NAMES[1:4])
    assert model.feature_names_in_.tolist() == NAMES[1:4]
    frame = pd.DataFrame(data[0], columns=NAMES)[NAMES[1:4]]
    assert model.predict(frame).shape == (N,)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[NAMES[1:4][::-1]])
    model.fit(mapped(data[0], parquet.parent / "x.npy"), data[1])
    assert not hasattr(model, "feature_names_in_")


def test_predictions_of_a_collection_are_lazy(data):
    import dask.array as da

    model = fastmix.AdaSSP(**BOUNDS, random_state=0).fit(*data)
    lazy = model.predict(da.from_array(data[0], chunks=(999, D)))
    assert isinstance(lazy, da.Array)
    np.testing.assert_allclose(lazy.compute(), model.predict(data[0]), rtol=1e-12)


def test_no_privacy_gives_least_squares(data, parquet):
    expected = fastmix.IHM(epsilon=float("inf"), **BOUNDS).fit(*data)
    found = fastmix.IHM(epsilon=float("inf"), **BOUNDS).fit_parquet(parquet)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-6)


@pytest.mark.parametrize("missing", ["bounds_X", "bounds_y"])
def test_bounds_must_be_given(parquet, missing):
    with pytest.raises(ValueError, match=f"{missing} must be given for data that are not in mem"):
        fastmix.IHM(**{**BOUNDS, missing: None}).fit_parquet(parquet)


@pytest.mark.parametrize(
    "model",
    [
        fastmix.FastIHM(variant="paper"),
        fastmix.FastIHM(sketch="srht"),
        fastmix.FastIHM(sketch="dct"),
        fastmix.IHM(variant="paper", literal=True),
        fastmix.LinearMixing(fast=True),
    ],
    ids=repr,
)
def test_methods_that_need_memory_say_so_and_charge_nothing(model, data, parquet):
    budget = BudgetAccountant(epsilon=5.0, delta=1e-5)
    model.set_params(**BOUNDS, accountant=budget)
    with pytest.raises(ValueError, match="needs its data in memory: use literal=False"):
        model.fit_parquet(parquet)
    assert len(budget) == 0
    # A memory map is as good as an array.
    assert model.fit(mapped(data[0][:400], parquet.parent / "x.npy"), data[1][:400]).coef_.any()


class Counted(Chunk):
    """Counts its readings, and may fail in one of them."""

    name, length = "counted", N

    def __init__(self, data, fails_at=None):
        self.data, self.readings, self.fails_at = data, 0, fails_at

    def read(self):
        self.readings += 1
        if self.readings == self.fails_at:
            raise KeyboardInterrupt
        yield from ArrayChunk("counted", *self.data).read()


def test_a_spent_budget_is_refused_before_anything_is_read(data):
    chunk = Counted(data)
    budget = BudgetAccountant(epsilon=0.5, delta=1e-5)
    with pytest.raises(BudgetError):
        fastmix.IHM(**BOUNDS, accountant=budget).fit_chunks(Chunks([chunk], D))
    assert chunk.readings == 0


@pytest.mark.parametrize(
    ("method", "steps", "least"),
    [
        (fastmix.IHM, {"n_steps": 3}, 6),
        # The default makes no sketch of so few columns.
        (fastmix.FastIHM, {"n_steps": 3, "sketch_size": 256}, 7),
        (fastmix.FastIHM, {"n_steps": 3, "sketch_size": 256, "sketch": "kerdock"}, 8),
        (fastmix.AdaSSP, {}, 2),
    ],
)
def test_an_interrupt_in_any_pass_leaves_the_release_paid(method, steps, least, data):
    chunk = Counted(data)
    method(**BOUNDS, **steps).fit_chunks(Chunks([chunk], D))
    assert chunk.readings >= least
    for fails_at in range(1, chunk.readings + 1):
        budget = BudgetAccountant(epsilon=5.0, delta=1e-5)
        model = method(**BOUNDS, accountant=budget, **steps)
        with pytest.raises(KeyboardInterrupt):
            model.fit_chunks(Chunks([Counted(data, fails_at)], D))
        # The first pass checks the data; nothing is released before it has ended.
        assert (budget.total()[0] > 0.0) == (fails_at > 1)


def test_bad_data_are_found_before_anything_is_charged(data, tmp_path):
    X, y = data[0].copy(), data[1]
    X[4000, 2] = np.nan
    pq.write_table(pa.table([*X.T, y], names=[*NAMES, "y"]), tmp_path / "may.parquet", 999)
    budget = BudgetAccountant(epsilon=5.0, delta=1e-5)
    with pytest.raises(InvalidValueError):
        fastmix.IHM(**BOUNDS, accountant=budget).fit_parquet(tmp_path / "may.parquet")
    assert len(budget) == 0


def test_progress_depends_on_public_values_only(data, parquet, capsys):
    def lines(targets):
        table = pq.read_table(parquet).drop_columns("y").append_column("y", [targets])
        pq.write_table(table, parquet, row_group_size=777)
        given = {"random_state": 0, "n_steps": 2, "sketch_size": 256, "sketch": "kerdock"}
        with progress("FastIHM", lines=True):
            fastmix.FastIHM(**BOUNDS, **given).fit_parquet(parquet)
        return capsys.readouterr().err

    heard = lines(data[1])
    assert "[FastIHM] sketch: 100%" in heard
    assert "[FastIHM] distortion: 29%" in heard
    assert heard == lines(np.zeros(N))


LIMITED = """
import resource, sys
import numpy as np
import fastmix
from fastmix.data.arrow import file_chunks

def used():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmData")) * 1024

def fit(method, n=None):
    model = method(bounds_X=(-1.0, 1.0), bounds_y=(-1.0, 1.0), n_steps=2)
    if n is None:
        return model.fit_parquet(sys.argv[1])
    table = file_chunks(sys.argv[1], "y")
    return model.fit_chunks(type(table)(table.chunks[:n], table.d))

methods = {"IHM": fastmix.IHM, "FastIHM": fastmix.FastIHM}
for method in methods.values():
    fit(method, 1)  # libraries, threads and their stacks are there from now on
room = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_DATA, (used() + room, used() + room))
try:
    table = np.empty(room + (room >> 2), dtype=np.uint8)
    sys.exit("the limit does not hold")
except MemoryError:
    pass
for name, method in methods.items():
    print(name, fit(method).privacy_.data["n_samples"])
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's limits")
def test_a_table_larger_than_the_memory_that_is_allowed(tmp_path):
    """200 MB of numbers, with room for 150 MB more than the process has after its imports."""
    rng = np.random.default_rng(0)
    rows, columns = 1 << 16, 20
    names = [f"x{j}" for j in range(columns)]
    schema = pa.schema([(name, pa.float64()) for name in (*names, "y")])
    with pq.ParquetWriter(tmp_path / "big.parquet", schema, compression="none") as file:
        for _ in range(20):
            X = rng.uniform(-1.0, 1.0, (rows, columns))
            file.write_table(pa.table([*X.T, X[:, 0]], names=schema.names))
    assert (tmp_path / "big.parquet").stat().st_size > 200e6
    run = subprocess.run(
        [sys.executable, "-c", LIMITED, tmp_path / "big.parquet", str(150 << 20)],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert run.stdout.split() == ["IHM", str(20 * rows), "FastIHM", str(20 * rows)]
    assert resource.getrlimit(resource.RLIMIT_DATA)[0] == resource.RLIM_INFINITY
