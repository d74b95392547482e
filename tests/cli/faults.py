"""Fits that are killed, or whose disk fills up, at random places; a script that tests start.

    python faults.py FOLDER kill|full COUNT SEED

Every fit runs in a process of its own, forked from one that has imported fastmix and never fits.
After every fault the ledger, the folder of the model and its certificate must be whole.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import shutil
import signal
import sys
import time
from functools import partial
from pathlib import Path

import fastmix.cli.fit  # noqa: F401  (all of the command, before the first fork)
from fastmix import BudgetAccountant
from fastmix.certificate.signing import SIGNED
from fastmix.cli import main

#: What is about to happen when a process is stopped: everything that touches a file.
TOUCHES = ("open", "os.", "fcntl.", "ctypes.call_function", "shutil.")
FIT = (
    "fit people.csv --target income --bounds bounds.toml --epsilon 0.1 --delta 1e-8 "
    "--method adassp --no-intervals --ledger budget.jsonl"
)


def quietly(line):
    """Run a command and return its exit code and what it printed."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = main(line.split())
    return code, out.getvalue()


def count_touches(act, at=None):
    """Count the events that touch files from here on, and act before one of them."""
    seen = [0]

    def hook(event, _):
        if event.startswith(TOUCHES) and seen is not None:
            seen[0] += 1
            if seen[0] == at:
                act()

    sys.addaudithook(hook)
    # Writing and waiting for the disk have no events of their own.
    for name in ("write", "fsync", "ftruncate", "posix_fallocate"):
        setattr(os, name, _with_event(getattr(os, name), f"os.{name}"))
    return seen


def _with_event(function, event):
    def wrapped(*arguments):
        sys.audit(event)
        return function(*arguments)

    return wrapped


def in_child(line, prepare):
    """Fork a process that runs a command; return its process number and a pipe from it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        return child, reader
    os.close(reader)
    seen = prepare()
    code, out = quietly(line)
    os.write(writer, json.dumps([code, seen, out]).encode())
    os._exit(0)


def finished(child, reader):
    with os.fdopen(reader, "rb") as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    return (json.loads(text) if text else None), status


def fill_disk():
    """Take all that is left of the file system, as another program would."""
    with contextlib.suppress(OSError), open("filler", "ab", buffering=0) as file:
        while True:
            file.write(bytes(4096))


def kill_self():
    os.kill(os.getpid(), signal.SIGKILL)


class Checker:
    """The state of the folder between two fits, and what must hold of it."""

    def __init__(self):
        self.releases = self.charges = 0
        self.digests = {}

    def check(self, out):
        charges = len(BudgetAccountant.load("budget.jsonl").charges)
        assert charges >= self.charges, "a charge was lost"
        folder = Path(out)
        if not folder.exists() and out in self.digests:
            # Killed between the two renames: both models are there, and the new one is taken.
            (old,) = Path().glob(".fastmix-*-old")
            assert sorted(os.listdir(old)) == sorted(SIGNED), os.listdir(old)
            Path(old.name.removesuffix("-old")).rename(folder)
        if folder.exists():
            assert sorted(os.listdir(folder)) == sorted(SIGNED), os.listdir(folder)
            code, text = quietly(f"explain {out} --verify --json")
            assert code == 0, text
            digest = json.loads(text)["certificate"]["digest"]
            if self.digests.get(out) != digest:
                self.releases += 1
                assert digest not in self.digests.values()
                self.digests[out] = digest
        else:
            assert out not in self.digests
        assert charges >= self.releases, "a model was released that was not charged"
        self.charges = charges
        for left in Path().glob(".fastmix-*"):  # whole models, or parts of one
            assert {*os.listdir(left)} <= {*SIGNED}, os.listdir(left)
            shutil.rmtree(left)
        # Nothing else is left but the folder beside.
        for entry in folder.parent.iterdir():
            assert entry.name.startswith(
                (".fastmix-", "budget.jsonl", "model", "people.", "bounds.toml")
            ), entry


def run(kind, count, seed):
    chance = random.Random(seed)
    checker = Checker()
    child, reader = in_child(f"{FIT} --out model", lambda: count_touches(None))
    started = time.perf_counter()
    (code, seen, text), _ = finished(child, reader)
    seconds, touches = time.perf_counter() - started, seen[0]
    assert code == 0, text
    checker.check("model")
    hit = dict.fromkeys(("kept", "replaced", "absent", "new", "charged in vain"), 0)
    for turn in range(count):
        out = "model" if turn % 2 else f"model{turn}"
        line = f"{FIT} --out {out} --force"
        before, charged = checker.releases, checker.charges
        at = chance.randint(1, touches + 5)
        if kind == "kill" and turn % 4 < 2:
            child, reader = in_child(line, lambda: [0])
            time.sleep(chance.uniform(0.0, 1.1 * seconds))
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        elif kind == "kill":
            child, reader = in_child(line, partial(count_touches, kill_self, at))
        elif turn % 4 < 2:  # what is left is too little for some of the files
            room = chance.randint(0, 230)
            fill_disk()
            with open("filler", "r+b") as file:
                file.truncate(max(0, os.fstat(file.fileno()).st_size - 4096 * room))
            child, reader = in_child(line, lambda: [0])
        else:
            child, reader = in_child(line, partial(count_touches, fill_disk, at))
        done, status = finished(child, reader)
        Path("filler").unlink(missing_ok=True)
        checker.check(out)
        new = checker.releases > before
        if done is not None:
            assert new == (done[0] == 0), done
            assert done[0] in (0, 2, 3), done
        else:
            assert os.WIFSIGNALED(status), status
        hit["new" if new and not turn % 2 else "replaced" if new else
            "kept" if turn % 2 else "absent"] += 1  # fmt: skip
        hit["charged in vain"] += checker.charges - charged - new
        if out != "model" and Path(out).exists():
            for name in SIGNED:
                Path(out, name).unlink()
            Path(out).rmdir()
    assert quietly(f"{FIT} --out model --force")[0] == 0
    checker.check("model")
    print(json.dumps({**hit, "charges": checker.charges, "releases": checker.releases}))


if __name__ == "__main__":
    os.chdir(sys.argv[1])
    run(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
