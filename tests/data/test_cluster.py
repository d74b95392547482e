"""A real Dask cluster of two processes: equality, lost and slow workers, what is written down."""

import io
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, redirect_stderr
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import fastmix
from fastmix.data import ArrayChunk, Chunk, Chunks
from fastmix.data.dask import Cluster, dask_chunks
from fastmix.datasets import make_correlated
from fastmix.errors import DataError, InvalidValueError

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")

N, D = 20_000, 6
PARAMETERS = {"bounds_X": (-8.0, 8.0), "bounds_y": (-12.0, 12.0), "random_state": 5}


@pytest.fixture(scope="module")
def data():
    return make_correlated(N, D, random_state=0)


@contextmanager
def cluster_of(workers):
    """A cluster on loopback; ports are free ones, so that tests may run side by side."""
    with (
        distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            host="127.0.0.1",
            scheduler_port=0,
            dashboard_address="127.0.0.1:0",
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client():
    with cluster_of(2) as client:
        yield client


def assert_same(found, expected):
    size = np.abs(expected.coef_).max()
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=0, atol=1e-9 * size)
    assert found.intercept_ == pytest.approx(expected.intercept_, abs=1e-9 * size)
    assert found.privacy_.spent == expected.privacy_.spent


@pytest.mark.parametrize("method", [fastmix.IHM, fastmix.FastIHM, fastmix.AdaSSP])
@pytest.mark.parametrize("rows", [1700, 7000])
def test_a_cluster_gives_the_result_in_memory(client, data, method, rows):
    X, y = (da.from_array(each, chunks=(rows, *each.shape[1:])) for each in data)
    model = method(**PARAMETERS, inference=True)
    assert_same(model.fit(X.persist(), y), method(**PARAMETERS, inference=True).fit(*data))


@pytest.mark.parametrize("solver", ["gram", "sketch"])
@pytest.mark.parametrize("clip", [None, 0.1])
def test_a_cluster_gives_the_minimiser_in_memory(client, data, solver, clip, tmp_path):
    """To 1e-8, with the same seed; so do files, and many residuals outside the zone."""
    X, y = (da.from_array(each, chunks=(1700, *each.shape[1:])) for each in data)
    model = fastmix.ObjectivePerturbation(**PARAMETERS, solver=solver, residual_clip=clip)
    expected = clone(model).fit(*data)
    frame = pd.DataFrame(data[0], columns=[f"x{j}" for j in range(D)]).assign(y=data[1])
    for part in range(3):
        frame[part::3].to_parquet(tmp_path / f"{part}.parquet")
    in_order = pd.concat([frame[part::3] for part in range(3)])
    for found, wanted in (
        (clone(model).fit(X.persist(), y), expected),
        (
            clone(model).fit_parquet(tmp_path, target="y"),
            clone(model).fit(in_order.drop(columns="y").to_numpy(), in_order["y"].to_numpy()),
        ),
    ):
        size = np.abs(wanted.coef_).max()
        np.testing.assert_allclose(found.coef_, wanted.coef_, rtol=0, atol=1e-8 * size)
        assert found.privacy_.spent == wanted.privacy_.spent


class Fatal(Chunk):
    """Kills the worker that reads it, once in each of the first passes."""

    def __init__(self, data, folder, kills):
        self.name, self.length = "fatal", len(data[0])
        self.data, self.folder, self.kills = data, str(folder), kills

    def read(self):
        # Readings come in pairs: one that dies, and the one that takes its place.
        readings = len(os.listdir(self.folder))
        Path(self.folder, str(readings)).touch()
        if readings % 2 == 0 and readings < 2 * self.kills:
            os.kill(os.getpid(), signal.SIGKILL)
        yield from ArrayChunk(self.name, *self.data).read()


def parts_of(data, count=4):
    X, y = data
    cuts = np.linspace(0, len(X), count + 1).astype(int)
    return [(X[a:b], y[a:b]) for a, b in pairwise(cuts)]


@pytest.mark.parametrize(
    ("method", "kills"),
    [
        (fastmix.AdaSSP, 1),
        pytest.param(fastmix.FastIHM, 7, marks=pytest.mark.slow),
        pytest.param(fastmix.IHM, 5, marks=pytest.mark.slow),
    ],
)
def test_a_worker_is_killed_in_each_pass(data, tmp_path, method, kills):
    """Check, moments, counts, gradients, curvature: each survives ``kill -9``."""
    steps = {} if method is fastmix.AdaSSP else {"n_steps": 2}
    parameters = {**PARAMETERS, **steps, "inference": True}
    first, *others = parts_of(data)
    rest = [ArrayChunk("part", *part) for part in others]
    for folder in ("alive", "killed"):
        (tmp_path / folder).mkdir()
    expected = method(**parameters)
    expected.fit_chunks(Chunks([Fatal(first, tmp_path / "alive", 0), *rest], D))
    chunks = [Fatal(first, tmp_path / "killed", kills), *rest]
    # Seeded, so that both can be compared: only a budget that records takes it.
    budget = fastmix.BudgetAccountant(epsilon=float("inf"), delta=1e-6)
    model = method(**parameters, accountant=budget)
    # Enough workers for all deaths, should none be started again in time.
    with cluster_of(kills + 2) as client:
        model.fit_chunks(Chunks(chunks, D, executor=Cluster(client)))
    assert_same(model, expected)
    passes = len(os.listdir(tmp_path / "alive"))
    assert kills < passes
    assert len(os.listdir(tmp_path / "killed")) == passes + kills
    assert len(budget.charges) == 1  # a retry is no second release


@pytest.mark.slow
@pytest.mark.parametrize(("solver", "passes"), [("gram", 3), ("sketch", 8)])
def test_a_worker_is_killed_in_each_pass_of_a_solver(data, tmp_path, solver, passes):
    """Check, Gram matrix or sketch, and every pass of the solver: each survives ``kill -9``."""
    first, *others = parts_of(data)
    chunks = [Fatal(first, tmp_path, passes), *(ArrayChunk("part", *part) for part in others)]
    model = fastmix.ObjectivePerturbation(**PARAMETERS, solver=solver)
    expected = clone(model).fit(*data)
    with cluster_of(passes + 2) as client:
        model.fit_chunks(Chunks(chunks, D, executor=Cluster(client)))
    assert len(os.listdir(tmp_path)) >= 2 * passes
    size = np.abs(expected.coef_).max()
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=0, atol=1e-8 * size)


def test_blocks_lost_with_a_worker_are_made_again(data):
    killed = []
    with cluster_of(3) as client:
        X, y = (da.from_array(each, chunks=(3000, *each.shape[1:])).persist() for each in data)
        distributed.wait([X, y])

        def report(name, part):
            if name == "gradients" and not killed:
                killed.extend(client.run(os.getpid).values())
                os.kill(killed[0], signal.SIGKILL)

        model = fastmix.IHM(**PARAMETERS).fit_chunks(dask_chunks(X, y), report=report)
    assert_same(model, fastmix.IHM(**PARAMETERS).fit(*data))
    assert killed


class Slow(Chunk):
    name, length = "slow", None

    def __init__(self, data):
        self.data = data

    def read(self):
        time.sleep(0.3)
        yield from ArrayChunk(self.name, *self.data).read()


def test_a_slow_worker_changes_nothing(client, data):
    first, *others = parts_of(data)
    chunks = [Slow(first), *(ArrayChunk("part", *part) for part in others)]
    model = fastmix.AdaSSP(**PARAMETERS).fit_chunks(Chunks(chunks, D, executor=Cluster(client)))
    assert_same(model, fastmix.AdaSSP(**PARAMETERS).fit(*data))


def test_logs_quote_no_value(client, data):
    """A task that fails would be logged with its arguments: it must not fail."""
    X, y = data[0].copy(), data[1]
    X[:, 0], X[123, 1] = 61.2345678, np.nan
    table = dask_chunks(da.from_array(X, chunks=(5000, D)), da.from_array(y, chunks=5000))
    heard = io.StringIO()
    with redirect_stderr(heard), pytest.raises(DataError) as caught:
        fastmix.IHM(**PARAMETERS).fit_chunks(table)
    assert str(caught.value) == InvalidValueError.MESSAGE
    logs = client.get_worker_logs()
    told = heard.getvalue() + "".join(line for lines in logs.values() for _, line in lines)
    assert len(logs) == 2
    assert "61.234" not in told
    assert "Compute Failed" not in told


def test_workers_get_public_values_and_draw_no_noise(client, data, monkeypatch):
    """What is sent is a pass, the public maps and, for the distortion, the sketched data."""
    sent = []
    run = Cluster.run

    def spy(self, work, chunks, report):
        sent.append(work)
        return run(self, work, chunks, report)

    monkeypatch.setattr(Cluster, "run", spy)
    X, y = (da.from_array(each, chunks=(5000, *each.shape[1:])) for each in data)
    given = {"n_steps": 2, "sketch_size": 256, "sketch": "kerdock", "inference": True}
    fastmix.FastIHM(**PARAMETERS, **given).fit(X, y)
    values = {work.task.name: work.task.value for work in sent}
    given_to = {name: dict(getattr(value, "keywords", {})) for name, value in values.items()}
    given_to["curvature"] |= given_to["curvature"].pop("at")._asdict()
    assert {name: sorted(fields) for name, fields in given_to.items()} == {
        "check": [],
        "mean": [],
        "sketch": ["draw"],
        "distortion": ["Z", "draw"],
        "gradients": ["edges", "free", "longest", "theta"],
        "objective": ["loss", "theta"],
        "curvature": [
            *("lacking", "loss", "square", "squares", "steepest", "theta", "transform", "weights"),
        ],
    }
    assert not any(getattr(value, "args", ()) for value in values.values())
    passed = {"name", "value", "combine", "quiet", "large"}
    assert all(set(vars(work.task)) == passed for work in sent)
    public = {"task", "d", "row_map", "target_map", "checked", "measure"}
    assert all(set(vars(work)) == public for work in sent)


def test_blocks_that_do_not_fit_together(client, data):
    X, y = data
    with pytest.raises(ValueError, match="y must have one entry per row of X"):
        fastmix.IHM(**PARAMETERS).fit(da.from_array(X, chunks=(5000, D)), y[:10])
    lazy = da.from_array(X, chunks=(5000, D))
    unknown = lazy[da.from_array(np.ones(N, bool), chunks=5000)]
    model = fastmix.IHM(**PARAMETERS).fit(unknown, da.from_array(y, chunks=5000))
    assert_same(model, fastmix.IHM(**PARAMETERS).fit(*data))
    with pytest.raises(ValueError, match="y must have as many blocks as X"):
        fastmix.IHM(**PARAMETERS).fit(unknown, da.from_array(y, chunks=10_000))
    said = r"^X and y must have the same number of rows in each block"
    with pytest.raises(DataError, match=said):
        fastmix.IHM(**PARAMETERS).fit(unknown, da.from_array(y, chunks=((4000, 6000, 5000, 5000),)))
    with pytest.raises(ValueError, match="y must be a Dask collection"):
        fastmix.IHM(**PARAMETERS).fit(unknown, y)
    with pytest.raises(ValueError, match="X must be two-dimensional"):
        fastmix.IHM(**PARAMETERS).fit(lazy[:, 0], y)
    with pytest.raises(ValueError, match="y must be one-dimensional"):
        fastmix.IHM(**PARAMETERS).fit(lazy, lazy)
    with pytest.raises(ValueError, match="X must hold real numbers"):
        fastmix.IHM(**PARAMETERS).fit(lazy.astype(str), y)


def test_a_fit_leaves_the_configuration_of_dask_alone(data):
    """Also when it is the fit that brings in the distributed scheduler."""
    code = """
import sys, dask, dask.array as da, numpy as np, fastmix
assert "distributed" not in sys.modules
X = da.from_array(np.eye(100), chunks=(50, 100))
fastmix.AdaSSP(bounds_X=(-1, 1), bounds_y=(-1, 1)).fit(X, np.zeros(100))
assert dask.config.get("distributed.comm.timeouts.connect")
assert "1GiB" not in str(dask.config.get("distributed.admin"))
"""
    subprocess.run([sys.executable, "-c", code], check=True)
