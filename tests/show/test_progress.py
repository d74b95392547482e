"""Progress bars: when they appear, what they say, and that they leave nothing behind."""

import os
import pty
import subprocess
import sys
import types
from importlib import import_module

import numpy as np
import pytest

import fastmix
from fastmix.show import progress as module
from fastmix.show.progress import progress


class Drawn:
    """A screen that keeps what was drawn on it, as a progress display of rich has it."""

    def __init__(self):
        self.reports, self.started, self.stopped = [], 0, 0

    def add_task(self, description, total):
        self.reports.append({"description": description, "total": total})
        return 0

    def update(self, task, **shown):
        self.reports.append(shown)

    def reset(self, task):
        self.reports.append("reset")

    def start(self):
        self.started += 1

    def stop(self):
        self.stopped += 1

    @property
    def words(self):
        return {each["description"] for each in self.reports if "description" in each}


@pytest.fixture
def screen(monkeypatch):
    """A screen on which bars appear at once."""
    drawn = Drawn()
    monkeypatch.setattr(module, "AFTER", 0.0)
    monkeypatch.setattr(module, "_screen", lambda: drawn)
    return drawn


def test_a_new_count_has_a_speed_of_its_own(screen):
    with progress("work") as bar:
        bar.passing("check", 0.0)
        bar.passing("check", 1.0)
        bar.step(1, 4, last=4.0)
        bar.passing("gram", 0.5)  # inside a step, the steps go on
        bar.step(4, 4, last=4.0)
        bar.say("writing")
    assert screen.reports[1:] == [
        {"description": "work: check: 0%", "completed": 0.0, "total": 1.0},
        {"description": "work: check: 100%", "completed": 1.0, "total": 1.0},
        "reset",
        {"description": "work: step 1 of 4", "completed": 0, "total": 7.0},
        {"description": "work: gram: 50%"},
        {"description": "work: step 4 of 4", "completed": 3, "total": 7.0},
        "reset",
        {"description": "work: writing", "completed": 0.0, "total": None},
    ]


def test_a_bar_says_the_steps_of_the_plan_and_vanishes(screen):
    X, y = np.random.default_rng(0).uniform(-1, 1, (2, 4000))
    fitted = fastmix.PrivateLinearRegression(bounds_X=(-1, 1), bounds_y=(-1, 1))
    with progress("outer") as bar:
        fitted.fit(X[:, None], y)
        assert bar._title == "outer"
        while not screen.started:
            pass
    assert screen.stopped == 1
    assert screen.words == {"outer", *(f"outer: step {k} of 4" for k in (1, 2, 3, 4))}


def test_short_work_shows_nothing(screen, monkeypatch):
    monkeypatch.setattr(module, "AFTER", 100.0)
    with progress("short"):
        pass
    assert screen.started == 0


def test_an_error_removes_the_bar(screen):
    with pytest.raises(RuntimeError), progress("failing"):
        raise RuntimeError
    assert screen.stopped == 1
    with progress("next") as bar:
        assert bar._title == "next"


def test_without_a_terminal_only_lines_print(capsys):
    with progress("quiet") as bar:
        bar.say("reading")
        bar.step(1, 2)
    assert capsys.readouterr() == ("", "")
    with progress("told", lines=True) as bar:
        bar.passing("check", 0.5)
        bar.step(1, 2)
    assert capsys.readouterr() == ("", "[told] check: 50%\n[told] step 1 of 2\n")


def test_a_hidden_number_of_rows_does_not_show_in_shares(tmp_path, capsys):
    pq = pytest.importorskip("pyarrow.parquet")
    pa = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    said = []
    for n in (3000, 5000):
        X = rng.uniform(-1, 1, (n, 2))
        path = tmp_path / "t.parquet"
        pq.write_table(pa.table([*X.T, X[:, 0]], names=["a", "b", "y"]), path, row_group_size=500)
        model = fastmix.PrivateLinearRegression(
            bounds_X=(-1, 1), bounds_y=(-1, 1), delta=1e-6, public_rows=False
        )
        with progress("fit", lines=True):
            model.fit_parquet(path)
        said.append(capsys.readouterr().err)
    assert said[0] == said[1]
    assert "check: 100%" in said[0]
    assert not {"17%", "10%", "33%", "20%"} & set(said[0].split())


def test_a_text_file_reports_its_blocks_to_a_bar_alone(tmp_path, monkeypatch, capsys):
    """Blocks are counted by bytes: in lines, which stay, one long record would show."""
    for name in ("encode", "delimited"):
        monkeypatch.setattr(import_module(f"fastmix.data.{name}"), "CSV_BYTES", 1 << 14)
    passing, shares = module.Bar.passing, []

    def noted(self, name, part):
        shares.append(part)
        passing(self, name, part)

    monkeypatch.setattr(module.Bar, "passing", noted)
    values = np.random.default_rng(0).uniform(0, 1, (4000, 2))
    lines = "\n".join(f"{a:.6f},{b:.6f}" for a, b in values)
    (tmp_path / "t.csv").write_text("a,y\n" + lines)
    (tmp_path / "b.toml").write_text("[target]\ny = [0, 1]\n[features]\na = [0, 1]\n")
    model = fastmix.PrivateLinearRegression(bounds=tmp_path / "b.toml")
    with progress("fit", lines=True):
        model.fit_parquet(tmp_path / "t.csv", target="y")
    parts = [line.split()[-1] for line in capsys.readouterr().err.splitlines() if "check" in line]
    assert parts == ["0%", "100%"]
    assert shares[:6] == pytest.approx([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])


@pytest.mark.parametrize("missing", ["rich", "ipywidgets"])
def test_a_notebook_without_the_packages_of_a_bar_shows_nothing(monkeypatch, capsys, missing):
    kernel = types.SimpleNamespace(has_trait=lambda name: name == "kernel")
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: kernel))
    monkeypatch.setattr(module, "find_spec", lambda name: None if name == missing else name)
    monkeypatch.setattr(module, "AFTER", 0.0)
    with progress("fit of people") as bar:
        bar.step(2, 4)
    assert capsys.readouterr() == ("", "")


def test_a_notebook_with_widgets_has_a_screen(monkeypatch):
    pytest.importorskip("rich")
    kernel = types.SimpleNamespace(has_trait=lambda name: name == "kernel")
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: kernel))
    monkeypatch.setattr(module, "find_spec", lambda name: name)
    shown = module._screen()
    assert shown.live.transient


LONG = """
import sys, time
from fastmix.show import progress as module
module.AFTER = 0.1
with module.progress("fitting") as bar:
    for k in range(4):
        bar.step(k + 1, 4)
        time.sleep(0.3)
        print("line", k)
"""


def test_a_terminal_gets_a_bar_on_standard_error_alone():
    pytest.importorskip("rich")
    outer, inner = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    done = subprocess.run(
        [sys.executable, "-c", LONG], stdout=subprocess.PIPE, stderr=inner, env=env, check=True
    )
    os.close(inner)
    seen = os.read(outer, 1 << 16).decode()
    os.close(outer)
    assert done.stdout.decode().splitlines() == [f"line {k}" for k in range(4)]
    assert "fitting: step 2 of 4" in seen
    assert "left" in seen
    assert seen.endswith(("\x1b[2K", "\x1b[?25h"))  # the line is emptied, the cursor is back
