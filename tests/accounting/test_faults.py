"""Faults of the real kind: processes killed at random moments, files that may grow no further."""

from __future__ import annotations

import math
import subprocess
import sys
import textwrap

import pytest

from fastmix.accounting import BudgetAccountant

PRELUDE = """
import os, random, resource, signal, sys, time
from fastmix.accounting import BudgetAccountant, LaplaceEvent, Part, PrivacySpent
spent = PrivacySpent([Part("laplace", [LaplaceEvent(64.0)], 0.0)])
"""


def python(program, *arguments):
    """Run a program of its own, so that nothing of pytest is forked or limited."""
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(program), *map(str, arguments)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


# --- kill -9 ------------------------------------------------------------------------------------

# A worker charges, then makes its release: it appends the same label to a log of its own and waits
# until that is on the disk. The parent kills workers at random moments and replaces them; in the
# end it asks the last ones to stop.
WORKERS = """
folder, kills, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
ledger = os.path.join(folder, "ledger")
BudgetAccountant(float("inf"), 1e-6, ledger=ledger)
stop = os.path.join(folder, "stop")

def work(name):
    budget = BudgetAccountant.load(ledger)
    log = os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    count = 0
    while not os.path.exists(stop):
        label = f"{name}/{count}"
        budget.spend(spent, label=label)
        os.write(log, f"{label}\\n".encode())
        os.fsync(log)
        count += 1

def start(number):
    name = f"worker-{number}"
    child = os.fork()
    if child == 0:
        try:
            work(name)
        finally:
            os._exit(0 if os.path.exists(stop) else 1)
    return child, name

draw = random.Random(seed)
workers = dict(start(number) for number in range(4))
killed = []
for kill in range(kills):
    time.sleep(draw.uniform(0.0, 0.03))
    child = draw.choice(sorted(workers))
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    killed.append(workers.pop(child))
    workers.update([start(4 + kill)])
open(stop, "w").close()
for child in workers:
    assert os.waitpid(child, 0)[1] == 0
print(*killed)
"""


def kill_workers(folder, kills, seed):
    """Check the ledger after so many kills; return charges, releases, and those cut in between.

    Three claims. Every release was charged, once: the ledger is never behind. A worker that ended
    by itself has as many charges as releases. A worker that was killed has the same, or one charge
    more, its last: it died after the charge and before the release.
    """
    killed = set(python(WORKERS, folder, kills, seed).split())
    assert len(killed) == kills
    budget = BudgetAccountant.load(folder / "ledger")
    charges = [charge.label for charge in budget.charges]
    assert len(set(charges)) == len(charges)
    releases = [
        label for log in sorted(folder.glob("worker-*")) for label in log.read_text().splitlines()
    ]
    assert len(set(releases)) == len(releases)
    assert set(releases) <= set(charges)
    between = sorted(set(charges) - set(releases))
    for label in between:
        name, count = label.split("/")
        assert name in killed
        assert int(count) == sum(release.startswith(f"{name}/") for release in releases)
    assert len({label.split("/")[0] for label in between}) == len(between)
    # What the file adds up to is what was released, and the charges that death cut short.
    total = math.fsum(charge.spent.epsilon for charge in budget.charges)
    assert total == (len(releases) + len(between)) / 64.0
    return len(charges), len(releases), len(between)


def test_kills_lose_no_charge(tmp_path):
    charges, releases, between = kill_workers(tmp_path, kills=12, seed=1)
    assert charges == releases + between
    assert releases > 0


@pytest.mark.slow
def test_two_hundred_kills_lose_no_charge(tmp_path):
    charges, releases, between = kill_workers(tmp_path, kills=200, seed=2)
    print(f"{charges} charges, {releases} releases, {between} cut between the two")
    assert charges == releases + between
    assert releases > 50


# --- a file that may grow no further ------------------------------------------------------------

# RLIMIT_FSIZE stops a write after any given byte, as a disk that fills up does.
FULL = """
folder = sys.argv[1]
ledger = os.path.join(folder, "ledger")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
budget = BudgetAccountant(1.0, 1e-6, ledger=ledger)
budget.spend(spent, label="first")
before = open(ledger, "rb").read()
budget.spend(spent, label="other")
length = len(open(ledger, "rb").read()) - len(before)
with open(ledger, "wb") as file:
    file.write(before)
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
refused = 0
for room in [*range(0, length, 7), length - 2, length - 1]:
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + room, hard))
    try:
        budget.spend(spent, label="other")
    except OSError:
        refused += 1
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    assert open(ledger, "rb").read() == before, room
    assert len(budget) == 1
assert refused == len(range(0, length, 7)) + 2
budget.spend(spent, label="second")

# The same for a copy, which is replaced as a whole or not at all.
copy = os.path.join(folder, "copy")
budget.save(copy)
before = open(copy, "rb").read()
budget.spend(spent, label="third")
for room in range(0, len(before), 31):
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        budget.save(copy)
        raise SystemExit("saved on a full disk")
    except OSError:
        pass
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    assert open(copy, "rb").read() == before
budget.save(copy)
print(*[charge.label for charge in BudgetAccountant.load(copy).charges])
"""


def test_a_full_disk_refuses_at_every_byte_and_keeps_the_previous_file(tmp_path):
    assert python(FULL, tmp_path) == "first second third\n"
    assert {path.name for path in tmp_path.iterdir()} == {"copy", "ledger"}


@pytest.mark.parametrize("path", ["/dev/full", "/dev/null", "/dev/zero", "/tmp"])
def test_a_ledger_is_a_file(path):
    with pytest.raises(ValueError, match="ledger must be a file; got ledger="):
        BudgetAccountant(1.0, 1e-6, ledger=path)
    with pytest.raises(ValueError, match="ledger must be a file; got ledger="):
        BudgetAccountant.load(path)
