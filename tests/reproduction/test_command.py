"""The reproduction from the command line, as a stranger would run and interrupt it."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reproduction.command import main
from reproduction.experiments import EXPERIMENTS

ROOT = Path(__file__).parents[2]
CONFIG = """
seed = 3
trials = {trials}
steps = 4
timing_repeats = 1
draws = 1
synthetic_draws = 1
full_statistics = false
epsilons = [1.0]
figure2 = [{{ set = "sphere", n = 4096, ratios = [4, 16] }}]
airline = [{{ set = "sphere", n = 4096, ratios = [4, 16] }}]
hessians = [{{ set = "sphere", n = 4096, ratios = [4, 16] }}]

[figure1]
n = [10000]
d = 500
epsilons = [0.5, 2.0]

[orders]
n = [1024]
d = [2]
k1_per_column = [8]
k2_per_column = [16]

[crossover]
n = 1024
d = [4]
literal_d = 4
"""


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(CONFIG.format(trials=400))
    return path


def test_figure_and_page_from_one_command(config, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["figure1", "--config", str(config), "--out", str(out)]) == 0
    assert "wrote" in capsys.readouterr().out
    assert (out / "report.html").exists()
    assert (out / "figures" / "figure1-10000.svg").exists()
    assert "python -m reproduction figure1 --config tiny.toml" in (out / "runs.csv").read_text()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--data-dir", "nowhere"], "data_dir must exist"),
        (["--trials", "0"], "trials must be at least 1"),
        (["--jobs", "0"], "jobs must be at least 1"),
    ],
)
def test_a_wrong_value_is_one_line(config, tmp_path, capsys, more, message):
    command = ["figure1", "--config", str(config), "--out", str(tmp_path / "o")]
    assert main([*command, *more]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    "line",
    [
        "bench --quick --out kept",
        "report kept",
        "report kept --out kept.html",
        "report kept --docs kept",
        "figure1 --quick --out photos",
    ],
)
def test_a_file_that_exists_is_not_replaced(tmp_path, capsys, monkeypatch, line):
    monkeypatch.chdir(tmp_path)
    mine = ("kept.html", "kept/report.html", "kept/reproduction.md", "kept/performance.csv",
            "kept/figures/figure1.svg", "photos/me.jpg")  # fmt: skip
    for name in mine:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    before = sorted(Path().rglob("*"))
    assert main(line.split()) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert sorted(Path().rglob("*")) == before
    assert all(Path(name).read_text() == "mine" for name in mine)


def test_help_names_every_experiment(capsys):
    with pytest.raises(SystemExit) as done:
        main(["--help"])
    assert done.value.code == 0
    shown = capsys.readouterr().out
    listed = {line.split()[0] for line in shown.splitlines() if line.startswith("    ")}
    assert {*EXPERIMENTS, "all", "report", "bench"} <= listed


def test_an_interrupt_says_how_to_continue(config, tmp_path, capsys, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("reproduction.experiments.reproduce", interrupted)
    assert main(["figure2", "--config", str(config), "--out", str(tmp_path / "out")]) == 130
    assert "the same command continues" in capsys.readouterr().err


def test_a_missing_package_is_named(config, tmp_path, capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "reproduction.report", raising=False)
    monkeypatch.delitem(sys.modules, "reproduction.report.page", raising=False)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert main(["report", str(tmp_path)]) == 5
    assert 'jinja2 is missing: pip install -e ".[reproduction]"' in capsys.readouterr().err


@pytest.mark.slow  # a real process that is really interrupted
def test_ctrl_c_keeps_finished_trials(config, tmp_path):
    out = tmp_path / "out"
    command = [sys.executable, "-m", "reproduction", "figure2", "--jobs", "1"]
    command += ["--config", str(config), "--out", str(out)]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=ROOT
    ) as process:
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
