"""The command line as a stranger would use it."""

import re
import subprocess
import sys

import pytest

from fastmix.cli import main


def test_demo_prints_private_beside_non_private(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # In a process of its own, as ``make demo`` runs it: a command leaves slow packages out there.
    command = [sys.executable, "-m", "fastmix", "demo"]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    out = done.stdout
    spent = float(re.search(r"epsilon = ([0-9.]+)", out).group(1))
    assert 0.999 < spent <= 1.0
    assert "private" in out
    assert "non-private" in out
    # Dominant coefficient: a minute of departure delay is about a minute of arrival delay.
    row = next(line for line in out.splitlines() if line.startswith("dep_delay"))
    private, low, _, high, ordinary = row.split()[-5:]
    assert float(low) < float(private) < float(high)
    private, ordinary = float(private), float(ordinary)
    assert private == pytest.approx(ordinary, abs=0.2)
    assert ordinary == pytest.approx(1.0, abs=0.1)
    r2 = float(re.search(r"Private R²: ([0-9.]+),", out).group(1))
    exact = float(next(line for line in out.splitlines() if line.startswith("R²")).split()[-1])
    assert r2 == pytest.approx(exact, abs=0.03)
    report = tmp_path / re.search(r"open (\S+) in a browser", out).group(1)
    assert "Private regression of arr_delay" in report.read_text()
    assert main(["explain", str(report.parent), "--verify"]) == 0
    assert main(["demo", "--method", "dp_gd"]) == 0  # again, and without intervals


def test_wrong_value_is_one_line_and_exit_code_2(capsys):
    assert main(["demo", "--epsilon", "-1"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "fastmix: epsilon must be greater than 0; got epsilon=-1.0.\n"


def test_installed_command(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "fastmix", "--version"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("fastmix ")
