"""What a start imports: packages that take long to load are left out where nothing uses them."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

COUNT = """
import json, sys
from fastmix.cli import main
sys.argv[0] = "fastmix"
try:
    code = main() if len(sys.argv) > 1 else 0
finally:
    print(json.dumps([code, list(sys.modules)]), file=sys.stderr)
"""

#: Packages that compute or read tables.
HEAVY = {
    "dask", "joblib", "matplotlib", "pandas", "polars", "pyarrow", "randomgen", "scipy", "sklearn",
}  # fmt: skip


def imported(*arguments, program=COUNT, folder=None):
    """Return the modules that a fresh interpreter has imported, or their packages."""
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
    )
    code, names = json.loads(done.stderr.splitlines()[-1])
    assert code == 0, done.stderr
    return set(names)


def packages(names):
    return {name.partition(".")[0] for name in names}


def test_import_fastmix_imports_nothing_else():
    program = (
        "import fastmix, sys, json; print(json.dumps([0, list(sys.modules)]), file=sys.stderr)"
    )
    found = imported(program=program)
    assert packages(found).isdisjoint({*HEAVY, "numpy", "typer", "rich"})
    assert {name for name in found if name.startswith("fastmix")} == {"fastmix"}


def test_one_name_imports_its_package_only():
    program = (
        "import sys, json; from fastmix import BudgetError; "
        "print(json.dumps([0, list(sys.modules)]), file=sys.stderr)"
    )
    assert packages(imported(program=program)).isdisjoint({*HEAVY, "numpy"})


@pytest.mark.parametrize("option", ["--help", "-h", "--version"])
def test_help_and_version_import_no_package_that_computes(option):
    found = imported(option)
    assert packages(found).isdisjoint({*HEAVY, "numpy"})
    assert not {name for name in found if name.startswith("fastmix.estimators")}


BOUNDS = "[features]\nage = [18, 90]\ncity = ['Ulm', 'Bonn']\n[target]\nincome = [0, 100000]\n"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_fit_imports_what_it_uses(tmp_path, ending):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.csv
    import pyarrow.parquet

    draw = np.random.default_rng(1)
    columns = {"age": draw.uniform(18, 90, 1000), "income": draw.uniform(0, 1e5, 1000)}
    table = pa.table({**columns, "city": draw.choice(["Ulm", "Bonn"], 1000)})
    write = pyarrow.csv.write_csv if ending == "csv" else pyarrow.parquet.write_table
    write(table, tmp_path / f"people.{ending}")
    (tmp_path / "bounds.toml").write_text(BOUNDS)
    line = f"fit people.{ending} --target income --bounds bounds.toml --delta 1e-6"
    found = imported(*line.split(), folder=tmp_path)
    assert (tmp_path / "model" / "model.json").exists()
    assert packages(found).isdisjoint({"dask", "distributed", "matplotlib", "pandas", "polars"})
    unused = {
        "scipy.stats._stats_py",
        "sklearn.linear_model",
        "sklearn.metrics",
        "sklearn.model_selection",
    }
    assert found.isdisjoint(unused)
    assert found.isdisjoint({"fastmix.audit", "fastmix.planning", "fastmix.cli.demo"})
    # The list is not empty by mistake.
    assert {"fastmix.estimators", "sklearn.base", "scipy.special", "pyarrow"} <= found


def test_slow_packages_are_hidden_or_whole_on_first_use():
    program = """
import json, sys
from fastmix.cli._startup import leave_out_slow_packages
leave_out_slow_packages()
import sklearn.utils.fixes
assert "scipy.stats._stats_py" not in sys.modules and "pandas" not in sys.modules
import scipy.stats
assert scipy.stats.norm.cdf(0.0) == 0.5
from scipy.stats.mstats import mquantiles
assert sys.modules["scipy.stats"].norm is scipy.stats.norm
import pyarrow
assert pyarrow.array([1.0, None]).to_numpy(zero_copy_only=False)[0] == 1.0
assert "pandas" not in sys.modules
print(json.dumps([0, []]), file=sys.stderr)
"""
    imported(program=program)


@pytest.mark.parametrize(
    "command", ["calibrate --rows 1000 --columns 3", "plan --rows 9 --columns 1"]
)
def test_a_command_without_a_table_imports_neither_pandas_nor_its_readers(command):
    found = imported(*command.split())
    assert found.isdisjoint({"pandas.core", "scipy.stats._stats_py", "pyarrow.lib", "matplotlib"})
