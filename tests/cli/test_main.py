"""Errors of users are one line with a documented code; an interrupt is one line at any time."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fastmix.cli.main import ExitCode

FIT = "fit people.csv --target income --bounds"
HEAD = "[features]\nage = [0, 120]\n[target]\nincome = "


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = " + "[" * 100_000, "nested so deeply"),
        ("x = " + "[" * 2000 + "]" * 2000, "nested so deeply"),
        (f"{HEAD}[0, {'9' * 5000}]", "must be a TOML file"),
        (f"{HEAD}[0, {'9' * 400}]", "a larger number"),
        (f"{HEAD}[0, 1]\n# \xff".encode("latin-1"), "must be a TOML file"),
        (f"{HEAD}[0, 1e308]", "at most 1e+100"),
        ("#" * (1 << 25) + "\n", "bytes long"),
        ("", "[target]"),
        ("target = 3", "[target]"),
    ],
)
def test_a_bounds_file_of_any_kind_is_a_wrong_argument(folder, run, text, said):
    path = Path("odd.toml")
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    code, out, err = run(f"{FIT} odd.toml")
    assert code == ExitCode.USAGE, err
    assert said in err
    assert (out, err.count("\n")) == ("", 1)
    assert not Path("model").exists()


@pytest.mark.parametrize("epsilon", ["inf", "-inf", "nan", "0", "-1", "1e300", "1e-300", "1e7"])
@pytest.mark.parametrize(
    "line",
    [
        f"{FIT} bounds.toml",
        f"{FIT} bounds.toml --no-intervals --method ihm",
        "calibrate --rows 1000 --columns 3",
        "plan --rows 1000 --columns 3",
        "demo",
    ],
)
def test_an_epsilon_without_meaning_is_refused_before_anything(folder, run, line, epsilon):
    code, out, err = run(f"{line} --epsilon {epsilon}")
    assert code == ExitCode.USAGE, err
    assert err.startswith("fastmix: epsilon must ")
    assert out == ""
    assert not Path("model").exists()


@pytest.mark.parametrize("command", ["plan", "calibrate"])
@pytest.mark.parametrize(
    "sizes",
    [
        "--rows 0 --columns 3",
        "--rows -5 --columns 3",
        "--rows 1000 --columns 0",
        "--rows 1000 --columns -1",
        "--rows 1000 --columns 1000000000",
        f"--rows {10**26} --columns 3",
        "--rows 1.5 --columns 3",
        "--rows inf --columns 3",
    ],
)
def test_sizes_out_of_range_are_refused(folder, run, command, sizes):
    code, out, err = run(f"{command} {sizes}")
    assert code == ExitCode.USAGE, err
    assert (out, err.count("\n")) == ("", 1)
    assert "'--rows'" in err or "'--columns'" in err


@pytest.mark.parametrize(
    "content", [b"\xff\xfe{}", b"[" * 100_000, b"", b"null", b'{"format": NaN}', b"9" * 5000]
)
@pytest.mark.parametrize("line", ["explain odd.json --verify", "predict odd.json people.csv"])
def test_a_file_that_is_no_document_is_refused(folder, run, line, content):
    Path("odd.json").write_bytes(content)
    code, out, err = run(line)
    assert code == ExitCode.DATA, err
    assert (out, err.count("\n")) == ("", 1)


@pytest.mark.parametrize("header", [b"age,cit\xe9,income\n1,a,3\n", b"age,city,income\n1,\xe9,3\n"])
def test_a_table_in_another_encoding_is_refused(folder, run, header):
    Path("odd.csv").write_bytes(header)
    code, _, err = run("fit odd.csv --target income --bounds bounds.toml --out odd")
    assert code == ExitCode.DATA, err
    assert not Path("odd").exists()


def test_too_little_memory_is_said(folder, run, monkeypatch):
    def lacking(*_, **__):
        raise MemoryError

    monkeypatch.setattr("fastmix.cli._asked.encode", lacking)
    code, _, err = run(f"{FIT} bounds.toml")
    assert code == ExitCode.DATA
    assert "not enough memory" in err
    assert not Path("model").exists()


def test_no_output_tells_the_seconds_of_a_fit(folder, run):
    line = f"{FIT} bounds.toml --method adassp --no-intervals"
    code, out, _ = run(line)
    assert code == 0
    assert "4,000 rows, under a minute." in out
    code, out, _ = run(f"{line} --force --json")
    assert code == 0
    found = json.loads(out)
    assert found["minutes"] == 1
    assert "seconds" not in found


@pytest.mark.parametrize(
    "module", ["numpy._globals", "scipy._lib._array_api", "sklearn.exceptions"]
)
def test_an_interrupt_during_start_up_is_one_line(folder, module):
    """Sent as soon as the interpreter says that it has imported a module deep below."""
    process = subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "fastmix", "calibrate", "--help"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in process.stderr:
        if line.split("|")[-1].strip() == module:
            break
    else:
        pytest.fail(f"{module} is not imported any more: choose another one")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    said = [line for line in err.splitlines() if not line.startswith("import time:")]
    assert said == ["fastmix: interrupted."]
    assert process.returncode == ExitCode.INTERRUPTED
    assert out == ""
