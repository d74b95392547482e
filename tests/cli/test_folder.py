"""The folder of a fit: refused before a charge, or replaced as a whole."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fastmix import AdaSSP, BudgetAccountant
from fastmix.certificate.signing import SIGNED
from fastmix.cli import _folder
from fastmix.cli._folder import model_folder
from fastmix.cli.main import ExitCode
from fastmix.errors import DataError
from fastmix.show.html import templates

FIT = (
    "fit people.csv --target income --bounds bounds.toml --epsilon 0.1 --delta 1e-8 "
    "--method adassp --no-intervals"
)
CHARGED = f"{FIT} --ledger budget.jsonl"
FAULTS = Path(__file__).with_name("faults.py")


@pytest.fixture
def ledger(folder, run):
    assert run("ledger new budget.jsonl --epsilon 1000 --delta 1e-3")[0] == 0
    return lambda: len(BudgetAccountant.load("budget.jsonl").charges)


def contents(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


@pytest.mark.parametrize(
    ("out", "said"),
    [
        ("people.csv", "is a file"),
        ("people.csv/model", "Not a directory"),
        ("/proc/model", "No such file or directory"),
        ("/proc", "must not be a mount point"),
        ("x" * 300, "File name too long"),
        ("/".join(["y" * 200] * 25), "File name too long"),
        (".", "must not be the current folder"),
        ("..", "must not be the current folder"),
        ("own", "holds files that 'fastmix fit' did not write: 'report.html'"),
        ("photos", "holds files that 'fastmix fit' did not write: 'me.jpg'"),
        ("nested", "holds files that 'fastmix fit' did not write: 'model.json'"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_before_a_charge(ledger, run, out, said):
    Path("photos").mkdir()
    Path("photos/me.jpg").write_text("irreplaceable")
    Path("nested/model.json").mkdir(parents=True)
    Path("own").mkdir()
    Path("own/report.html").write_text("written by hand")
    before = sorted(os.listdir())
    for force in ("", " --force"):
        code, _, err = run(f"{CHARGED} --out {out}{force}")
        assert code == ExitCode.USAGE, err
        assert said in err
        assert ledger() == 0
        assert sorted(os.listdir()) == before
    assert Path("photos/me.jpg").read_text() == "irreplaceable"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_folder_of_another_user_is_refused_before_a_charge(ledger, run, tmp_path_factory):
    """A child that is not root; a folder that it may read and not write."""
    ours = Path(shutil.copytree(".", tmp_path_factory.mktemp("shared") / "work"))
    Path(ours, "closed").mkdir(mode=0o755)
    for path in (ours, *ours.parents):
        if path.owner() == "root" and path.is_relative_to("/tmp") and path != Path("/tmp"):
            path.chmod(path.stat().st_mode | 0o055)
    for path in ours.iterdir():
        os.chown(path, 65534 if path.name != "closed" else 0, -1)
    os.chown(ours, 65534, -1)
    child = os.fork()
    if not child:
        os.chdir(ours)
        os.setuid(65534)
        code, _, err = run(f"{CHARGED} --out closed/model")
        refused = code == ExitCode.USAGE and "Permission denied. Nothing was charged" in err
        os._exit(0 if refused else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(BudgetAccountant.load(ours / "budget.jsonl").charges) == 0


def test_files_that_the_fit_uses_are_not_in_the_folder(ledger, run):
    Path("model").mkdir()
    shutil.copy("bounds.toml", "model/report.html")
    code, _, err = run(f"{CHARGED} --out model --force --bounds model/report.html")
    assert code == ExitCode.USAGE
    assert "must not hold a file that the fit uses" in err
    Path("budget.jsonl").rename("model/model.json")
    os.symlink("model/model.json", "budget.jsonl")
    code, _, err = run(f"{CHARGED} --out model --force")
    assert code == ExitCode.USAGE
    assert ledger() == 0


def test_parents_are_made_and_taken_back(ledger, run):
    code, _, _ = run(f"{CHARGED} --out a/b/model")
    assert code == 0
    assert sorted(contents("a/b/model")) == sorted(SIGNED)
    code, _, _ = run(f"{CHARGED.replace('people.csv', 'nobody.csv')} --out c/d/model")
    assert code == ExitCode.DATA
    assert not Path("c").exists()
    assert ledger() == 1


def test_an_empty_folder_is_taken(ledger, run):
    Path("model").mkdir(mode=0o750)
    assert run(f"{CHARGED} --out ./model/")[0] == 0
    assert Path("model").stat().st_mode & 0o777 == 0o750
    os.symlink("model", "link")
    assert run(f"{CHARGED} --out link")[0] == ExitCode.USAGE
    old = contents("model")
    assert run(f"{CHARGED} --out link --force")[0] == 0
    assert Path("link").is_symlink()
    assert contents("model") != old
    assert run("explain link --verify")[0] == 0


def test_a_full_disk_keeps_the_old_model_and_charges_nothing(ledger, run):
    """No file may be longer than each of some lengths."""
    assert run(f"{CHARGED} --out model")[0] == 0
    old = contents("model")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        for room in (0, 100, 4096, 50_000, 262_144):
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
            try:
                code, _, err = run(f"{CHARGED} --out model --force")
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            assert code == ExitCode.USAGE, err
            assert "Nothing was charged" in err
            assert contents("model") == old
            assert ledger() == 1
    finally:
        signal.signal(signal.SIGXFSZ, handler)
    assert list(Path().glob(".fastmix-*")) == []


@pytest.mark.parametrize("name", ["fill", "sync_folder"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_after_the_charge_keeps_the_old_model(ledger, run, monkeypatch, name, error):
    assert run(f"{CHARGED} --out model")[0] == 0
    old = contents("model")

    def fail(*arguments):
        raise error

    monkeypatch.setattr(_folder, name, fail)
    code, _, err = run(f"{CHARGED} --out model --force")
    if isinstance(error, OSError):
        assert code == ExitCode.DATA
        assert "What was there before is unchanged." in err
        assert "The ledger was charged" in err
    else:
        assert code == ExitCode.INTERRUPTED
    assert contents("model") == old
    assert ledger() == 2
    assert list(Path().glob(".fastmix-*")) == []


@pytest.mark.parametrize("at", [1, 2])
def test_a_rename_that_fails_keeps_the_old_model(ledger, run, monkeypatch, at):
    """The first or the second of two renames fails."""
    assert run(f"{CHARGED} --out model")[0] == 0
    old, rename, calls = contents("model"), os.rename, []

    def fail(*names):
        calls.append(names)
        if len(calls) == at:
            raise OSError(5, "Input/output error")
        rename(*names)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", fail)
        code, _, err = run(f"{CHARGED} --out model --force")
    assert code == ExitCode.DATA
    assert "What was there before is unchanged." in err
    assert "The ledger was charged" in err
    assert contents("model") == old
    assert list(Path().glob(".fastmix-*")) == []
    assert run(f"{CHARGED} --out model --force")[0] == 0
    assert contents("model") != old
    assert list(Path().glob(".fastmix-*")) == []


KILLED = """
import os, signal, sys
from fastmix.cli import main
rename, calls = os.rename, []
def dying(*names):
    calls.append(names)
    if len(calls) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    rename(*names)
os.rename = dying
main(sys.argv[1:])
"""


def test_a_kill_between_renames_leaves_both_models(ledger, run):
    assert run(f"{CHARGED} --out model")[0] == 0
    old = contents("model")
    line = f"{CHARGED} --out model --force"
    done = subprocess.run([sys.executable, "-c", KILLED, *line.split()], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not Path("model").exists()
    new, kept = sorted(Path().glob(".fastmix-*"))
    assert contents(kept) == old
    assert contents(new).keys() == old.keys()
    new.rename("model")
    assert run("explain model --verify")[0] == 0
    assert run(f"{CHARGED} --out model --force")[0] == 0
    assert ledger() == 3


def test_a_missing_package_of_the_report_is_refused_before_a_charge(ledger, run, monkeypatch):
    templates.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    code, _, err = run(f"{CHARGED} --out model")
    assert code == ExitCode.MISSING_PACKAGE
    assert 'pip install "fastmix[cli]"' in err
    assert ledger() == 0
    assert not Path("model").exists()


def test_the_later_of_two_fits_to_one_place_replaces_nothing(ledger, run):
    with model_folder(Path("model"), force=False) as publish:
        assert run(f"{CHARGED} --out model")[0] == 0
        first = contents("model")
        with pytest.raises(DataError, match=r"The fit is in the folder 'model-") as error:
            publish("{}", "{}", "")
    assert contents("model") == first
    assert list(Path().glob(".fastmix-*")) == []
    (kept,) = Path().glob("model-*")
    assert kept.name in str(error.value)
    assert (kept / "model.json").read_text() == "{}"


def test_a_file_of_the_user_is_kept_whenever_it_comes(ledger, run, monkeypatch):
    """It appears in the old folder after all checks, just before the renames."""
    assert run(f"{CHARGED} --out model")[0] == 0
    real = os.rename

    def late(old, new):
        if Path(old).name == "model":
            Path("model/mine.txt").write_text("mine")
        real(old, new)

    monkeypatch.setattr(os, "rename", late)
    assert run(f"{CHARGED} --out model --force")[0] == 0
    assert sorted(contents("model")) == sorted(SIGNED)
    (kept,) = Path().glob(".fastmix-*")
    assert contents(kept) == {"mine.txt": b"mine"}
    assert ledger() == 2


def faults(folder, kind, count, seed=0, before=()):
    """Run the faults in a process of their own, and return how many ended in which way."""
    done = subprocess.run(
        [*before, sys.executable, str(FAULTS), str(folder), kind, str(count), str(seed)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert sum(found[key] for key in ("kept", "replaced", "absent", "new")) == count
    assert found["charges"] >= found["releases"]
    return found


def test_kills_leave_everything_whole(ledger, folder):
    faults(folder, "kill", 12)


@pytest.mark.slow
def test_500_kills_leave_everything_whole(ledger, folder):
    found = faults(folder, "kill", 500)
    for end in ("kept", "replaced", "absent", "new", "charged in vain"):
        assert found[end] > 10, found


@pytest.mark.slow
def test_200_full_disks_leave_everything_whole(ledger, folder):
    """A file system of four megabytes, in a mount namespace that ends with the process."""
    small = folder / "small"
    small.mkdir()
    program = f'mount -t tmpfs -o size=4m tmpfs {small} && cp *.csv *.toml *.jsonl {small} && "$@"'
    before = ("unshare", "--map-root-user", "--mount", "sh", "-c", program, "sh")
    if subprocess.run([*before, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this system lets nobody mount a small file system")
    found = faults(small, "full", 200, before=before)
    assert found["kept"] > 20
    assert found["absent"] > 20
    assert found["charged in vain"] == 0  # the room was allocated before the charge


@pytest.mark.parametrize("charges", [0, 1])
def test_an_interrupted_fit_says_whether_the_ledger_was_charged(ledger, run, monkeypatch, charges):
    def interrupted(model, *data):
        for _ in range(charges):
            model.accountant.spend(model.account(100, 2))
        raise KeyboardInterrupt

    monkeypatch.setattr(AdaSSP, "fit", interrupted)
    code, out, err = run(CHARGED)
    assert code == ExitCode.INTERRUPTED
    assert out == ""
    said = "the ledger was charged. The charge stands" if charges else "nothing was charged"
    assert said in err
    assert err.endswith("fastmix: interrupted.\n")
    assert ledger() == charges
