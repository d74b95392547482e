"""A PostgreSQL server for tests: Debian's package, on loopback, as a user without rights."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

USER, PASSWORD = "statistician", "Zwiebelkuchen"


def _program(name):
    """Return a program of the newest server that is installed."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    if not found:
        pytest.skip("there is no PostgreSQL server here; 'make servers' installs one")
    return str(found[-1])


def _identity():
    """Return the user that runs the server: this one, or postgres if this one is root."""
    if os.geteuid() != 0:
        return {}
    try:
        owner = pwd.getpwnam("postgres")
    except KeyError:
        pytest.skip("a server does not run as root, and there is no user postgres")
    return {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}


@contextmanager
def postgresql():
    """Start a server with an empty database; give its address, which holds a password."""
    initdb, server = _program("initdb"), _program("postgres")
    identity = _identity()
    folder = Path(tempfile.mkdtemp(prefix="fastmix-pg-"))
    if identity:
        os.chown(folder, identity["user"], identity["group"])
    try:
        password = folder / "password"
        password.write_text(PASSWORD)
        password.chmod(0o644)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
        options = ["-U", USER, "-A", "scram-sha-256", f"--pwfile={password}", "-E", "UTF8"]
        made = [initdb, "-D", str(folder / "db"), "--no-sync", *options]
        subprocess.run(made, check=True, **quiet, **identity)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        given = ["-D", str(folder / "db"), "-p", str(port), "-k", str(folder), "-h", "127.0.0.1"]
        process = subprocess.Popen([server, *given], **quiet, **identity)
        try:
            _wait(_program("pg_isready"), port, process)
            yield f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{port}/postgres"
        finally:
            process.terminate()
            process.wait(30)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait(ready, port, process):
    """Wait until the server answers."""
    asked = [ready, "-h", "127.0.0.1", "-p", str(port), "-t", "1", "-q"]
    for _ in range(120):
        if subprocess.run(asked).returncode == 0:
            return
        assert process.poll() is None, "the server has ended"
        subprocess.run(["sleep", "0.5"])
    raise AssertionError("the server does not answer")
