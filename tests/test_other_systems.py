"""fastmix without what Linux has and macOS or Windows lacks; see ``other_systems.py``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fastmix import BudgetAccountant

SYSTEMS = ("this", "macos", "windows")
RUNNER = Path(__file__).with_name("other_systems.py")
PACKAGES = "sklearn.linear_model pyarrow.csv pyarrow.parquet rich.console typer.rich_utils"

CHARGES = """
import os, sys
from fastmix import BudgetAccountant
from fastmix.accounting import LaplaceEvent, Part, PrivacySpent
from fastmix.errors import BudgetError
spent = PrivacySpent([Part("laplace", [LaplaceEvent(64.0)], 0.0)])
"""
FITS = """
import pickle, threading, warnings
import numpy as np
from fastmix import AdaSSP, load
warnings.simplefilter("ignore", UserWarning)
X, y = np.linspace(-1, 1, 400).reshape(200, 2), np.linspace(-1, 1, 200)
def fit(**more):
    return AdaSSP(delta=1e-6, bounds_X=(-1, 1), bounds_y=(-1, 1), **more).fit(X, y)
"""


@pytest.fixture
def start(tmp_path):
    """Return what starts a program on another system, in a folder with a place for the user."""
    (tmp_path / "local").mkdir()
    (tmp_path / "work").mkdir()
    environment = {
        **os.environ,
        "LOCAL_FOLDER": str(tmp_path / "local"),
        "TMPDIR": str(tmp_path),
        # The usual encoding of files and pipes in western Europe, and an error where fastmix
        # relies on it.
        "PYTHONIOENCODING": "cp1252",
    }

    def start(system, program, *arguments):
        words = [*("-X", "warn_default_encoding"), *("-W", "error::EncodingWarning:fastmix")]
        before = PACKAGES if FITS in program else "scipy.optimize"
        return subprocess.Popen(
            [sys.executable, *words, str(RUNNER), system, before, program, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="cp1252",
            env=environment,
            cwd=tmp_path / "work",
        )

    return start


def finished(process):
    out, err = process.communicate()
    assert process.returncode == 0, err[-3000:]
    return out


EVERYTHING = (
    CHARGES
    + FITS
    + """
budget = BudgetAccountant(100.0, 1e-3, ledger="budget.jsonl")
model = fit(accountant=budget)
with budget:
    fit()
    thread = threading.Thread(target=fit)
    thread.start()
    thread.join()
fit()
assert len(budget) == 3
assert len(pickle.loads(pickle.dumps(budget))) == 3
budget.save("copy.jsonl")
assert len(BudgetAccountant.load("copy.jsonl")) == 3
with open("budget.jsonl", "rb") as file:
    assert b"\\r" not in file.read()
model.save("linear")
assert (load("linear").predict(X) == model.predict(X)).all()
temporary = BudgetAccountant(0.5, 1e-6)
try:
    fit(accountant=temporary)
    raise AssertionError("a fit beyond the budget")
except BudgetError:
    pass
path = temporary.ledger
del temporary
assert not os.path.exists(path)
"""
)


@pytest.mark.parametrize("system", SYSTEMS)
def test_fit_charge_save_and_load(start, system):
    finished(start(system, EVERYTHING))


def test_windows_has_no_lock_file_and_does_not_replace_a_copy(start):
    program = """
budget = BudgetAccountant(1.0, 1e-6, ledger="a")
budget.save("b")
budget.spend(spent)
try:
    budget.save("b")
    raise AssertionError
except ValueError as error:
    assert "path must be new on Windows" in str(error)
assert sorted(os.listdir()) == ["a", "b"], os.listdir()
"""
    finished(start("windows", CHARGES + program))


COMMANDS = (
    CHARGES
    + FITS
    + """
from pathlib import Path
from fastmix.cli import main
def run(line, expected=0):
    assert main(line.split()) == expected, line
Path("people.csv").write_text("age,income\\n" + "50,1000\\n" * 200, encoding="utf-8")
Path("bounds.toml").write_text(
    "[features]\\nage = [18, 90]\\n[target]\\nincome = [0, 100000]\\n", encoding="utf-8"
)
FIT = "fit people.csv --target income --bounds bounds.toml --delta 1e-6 --epsilon 2"
run("--help")
run("ledger new budget.jsonl --epsilon 10 --delta 1e-3")
run(f"{FIT} --ledger budget.jsonl --out a/model")
run(f"{FIT} --ledger budget.jsonl --out a/model", 2)
run(f"{FIT} --ledger budget.jsonl --out a/model --force")
Path("empty").mkdir()
run(f"{FIT} --out empty")
run("ledger show budget.jsonl")
run("summary a/model")
run("explain a/model --verify")
run("predict a/model people.csv --out p.csv")
run("predict a/model people.csv --out p.csv", 2)
run("predict a/model people.csv --out p.csv --force")
run("plan --rows 1000 --columns 3")
assert len(BudgetAccountant.load("budget.jsonl")) == 2
left = [path.name for path in Path().rglob(".*")]
assert left == [], left
"""
)


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_command_line(start, system):
    finished(start(system, COMMANDS))


SPENDING = (
    CHARGES
    + """
budget = BudgetAccountant.load(sys.argv[1])
made = 0
for _ in range(30):
    try:
        budget.spend(spent)
        made += 1
    except BudgetError:
        pass
print(made)
"""
)


@pytest.mark.parametrize("system", SYSTEMS)
def test_processes_lose_no_charge_and_never_overspend(start, system, tmp_path):
    budget = BudgetAccountant(1.0, 1e-6, ledger=tmp_path / "ledger", rule="basic")
    workers = [start(system, SPENDING, tmp_path / "ledger") for _ in range(3)]
    assert sum(int(finished(worker)) for worker in workers) == 64 == len(budget)
    assert budget.total().epsilon == 1.0


BLOCK = (
    CHARGES
    + """
import subprocess
budget = BudgetAccountant(100.0, 1e-3)
child = [sys.executable, *sys.argv[1:]]
for ledger in (budget.ledger, "None"):
    with budget if ledger != "None" else open(os.devnull, "rb"):
        assert subprocess.check_output(child, encoding="utf-8").strip() == ledger
"""
)
CHILD = (
    CHARGES
    + """
found = BudgetAccountant.current()
print(found and found.ledger)
"""
)


# Not in the imitation of Windows, which takes away what starts processes here.
@pytest.mark.parametrize("system", ["this", "macos"])
def test_a_process_that_is_started_inside_a_block_knows_its_budget(start, system):
    finished(start(system, BLOCK, RUNNER, system, "scipy.optimize", CHILD))


STALE = (
    CHARGES
    + """
from fastmix import _system
from fastmix.accounting import _active
number, _, started = _system.lineage()[1].partition("-")
left = _active._usable_folder() / f"{number}-{int(started) - 1000}"
left.write_text("[]", encoding="ascii")
try:
    BudgetAccountant.current()
    raise AssertionError("a fit that may be unpaid")
except BudgetError as error:
    assert str(left) in str(error)
left.unlink()
assert BudgetAccountant.current() is None
"""
)


@pytest.mark.parametrize("system", SYSTEMS[1:])
def test_a_block_of_a_process_that_may_not_be_the_same_is_refused(start, system):
    finished(start(system, STALE))
