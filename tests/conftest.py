"""A folder as a stranger would have it: a table, and a bounds file filled in."""

from __future__ import annotations

import random
import secrets

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from fastmix.cli import main
from fastmix.releases import Noise
from tests.floats import FloatNoise

#: Values that must never be seen: they are in the table and in no bounds file.
SECRET_CITY, SECRET_INCOME, SECRET_AGE = "Rumpelstilzchen", 77123.4567, 61.2345

BOUNDS = """
[target]
income = [0, 100000]
[features]
age = [0, 120]
city = ["Ulm", "Bonn", "Kiel"]
"""


@pytest.fixture(autouse=True)
def same_noise_in_every_run(request, monkeypatch):
    """Draw the keys of secret noise from the test's name, so that a test passes always or never.

    Child processes draw their own keys; a test of the keys themselves is marked ``real_keys``.
    """
    if not request.node.get_closest_marker("real_keys"):
        keys = random.Random(request.node.nodeid)
        monkeypatch.setattr(secrets, "randbits", keys.getrandbits)
        monkeypatch.setattr(secrets, "token_bytes", lambda size=None: keys.randbytes(size or 32))
        made = np.random.default_rng  # public draws without a seed
        monkeypatch.setattr(
            np.random,
            "default_rng",
            lambda seed=None: made(seed if seed is not None else keys.getrandbits(128)),
        )


@pytest.fixture
def float_noise(monkeypatch):
    """Draw noise with NumPy's samplers, so that a test can draw the same once more."""
    monkeypatch.setattr(Noise, "_floored", FloatNoise._floored)


@pytest.fixture(scope="module")
def client():
    """A client of a cluster of two workers, which are threads of this process."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder with people.csv, people.parquet and bounds.toml, and nothing else."""
    rng = np.random.default_rng(0)
    n = 4000
    age = rng.integers(18, 90, n).astype(float)
    city = rng.choice(["Ulm", "Bonn", "Kiel", "Rom"], n)
    income = 20_000 + 300 * age + 5_000 * (city == "Bonn") + rng.normal(0, 2_000, n)
    age[0], city[1], income[2] = SECRET_AGE, SECRET_CITY, SECRET_INCOME
    table = pa.table({"age": age, "city": city, "income": income})
    pyarrow.csv.write_csv(table, tmp_path / "people.csv")
    pyarrow.parquet.write_table(table, tmp_path / "people.parquet")
    (tmp_path / "bounds.toml").write_text(BOUNDS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(capsys):
    """Run a command and return its exit code, standard output and standard error."""

    def run(line):
        code = main(line.split() if isinstance(line, str) else line)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run
