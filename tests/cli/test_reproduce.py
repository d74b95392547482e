"""The reproduction from the command line, as a stranger would run and interrupt it."""

import signal
import subprocess
import sys
import time

import pytest

from fastmix.cli import main

CONFIG = """
seed = 3
trials = {trials}
steps = 4
timing_repeats = 1
full_statistics = false
epsilons = [1.0]
figure2 = [{{ set = "sphere", n = 4096, ratios = [4, 16] }}]
airline = [{{ set = "sphere", n = 4096, ratios = [4, 16] }}]

[figure1]
n = [10000]
d = 500
epsilons = [0.5, 2.0]
"""


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(CONFIG.format(trials=400))
    return path


def test_figure_and_page_from_one_command(config, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["reproduce", "figure1", "--config", str(config), "--out", str(out)]) == 0
    assert "wrote" in capsys.readouterr().out
    assert (out / "report.html").exists()
    assert (out / "figures" / "figure1-10000.svg").exists()
    assert "fastmix reproduce figure1 --config tiny.toml" in (out / "runs.csv").read_text()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--data-dir", "nowhere"], "data_dir must exist"),
        (["--trials", "0"], "trials must be at least 1"),
    ],
)
def test_a_wrong_value_is_one_line(config, tmp_path, capsys, more, message):
    command = ["reproduce", "figure1", "--config", str(config), "--out", str(tmp_path / "o")]
    assert main([*command, *more]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.slow  # a real process that is really interrupted
def test_ctrl_c_keeps_finished_trials(config, tmp_path):
    out = tmp_path / "out"
    command = [sys.executable, "-m", "fastmix", "reproduce", "figure2", "--jobs", "1"]
    command += ["--config", str(config), "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        table = out / "figure2.csv"
        deadline = time.monotonic() + 120.0
        while time.monotonic() < deadline and process.poll() is None:
            if table.exists() and table.read_text().count("\n") > 10:
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"the same command continues" in error
    kept = table.read_text()
    assert kept.endswith("\n")
    assert main([*command[3:], "--trials", "3"]) == 0
    assert table.read_text().startswith(kept)
