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
from fastmix.show.progress import Pace, Screen, progress, times


class Clock:
    """A clock that a test moves."""

    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


class Drawn(Screen):
    """A screen that keeps what was drawn on it."""

    def __init__(self):
        self.words, self.cleared = [], 0

    def draw(self, words, pace):
        self.words.append(words)

    def clear(self):
        self.cleared += 1


@pytest.fixture
def screen(monkeypatch):
    """A screen on which bars appear at once."""
    drawn = Drawn()
    monkeypatch.setattr(module, "AFTER", 0.0)
    monkeypatch.setattr(module, "TICK", 0.001)
    monkeypatch.setattr(module, "_screen", lambda: drawn)
    return drawn


def test_time_left_follows_from_what_is_done(clock):
    pace = Pace(clock)
    assert pace.now() == (None, None)
    pace.reach(0, 4)
    clock.now += 5
    assert pace.now() == (None, None)  # nothing is done yet, so nothing is known
    pace.reach(1, 4)
    assert pace.now() == (0.25, 15.0)
    clock.now += 2.5
    assert pace.now() == (0.375, 12.5)
    clock.now += 100  # a step that takes long does not count as done
    assert pace.now() == (pytest.approx(1.95 / 4), pytest.approx(2.05 * 5))
    pace.reach(4, 4)
    assert pace.now() == (1.0, 0.0)
    assert times(pace) == "1:48, about 0:00 left"


def test_a_long_last_step_counts_as_several(clock):
    pace = Pace(clock)
    pace.reach(0, 7)
    clock.now += 3
    pace.reach(3, 7, 4.0)
    assert pace.now() == (3 / 7, 4.0)
    clock.now += 2
    assert pace.now() == (5 / 7, 2.0)


def test_a_pass_tells_how_long_the_steps_after_it_may_take(clock):
    pace = Pace(clock)
    pace.reach(0.0, 1.0)
    clock.now += 3
    pace.reach(1.0, 1.0)
    pace.reach(0, 4, 4.0)
    assert pace.now() == (0.0, 12.0)


def test_work_without_a_plan_has_no_time_left(clock):
    pace = Pace(clock)
    pace.reach(0.0, 0.0)
    clock.now += 3725
    assert pace.now() == (None, None)
    assert times(pace) == "1:02:05"


def test_a_bar_says_the_steps_of_the_plan_and_vanishes(screen):
    X, y = np.random.default_rng(0).uniform(-1, 1, (2, 4000))
    fitted = fastmix.PrivateLinearRegression(bounds_X=(-1, 1), bounds_y=(-1, 1))
    with progress("outer") as bar:
        fitted.fit(X[:, None], y)
        assert bar._words == "step 4 of 4"
        while not screen.words:
            pass
    assert screen.cleared == 1
    assert set(screen.words) <= {"outer", *(f"outer: step {k} of 4" for k in (1, 2, 3, 4))}


def test_short_work_shows_nothing(screen, monkeypatch):
    monkeypatch.setattr(module, "AFTER", 100.0)
    with progress("short"):
        pass
    assert screen.words == []


def test_an_error_removes_the_bar(screen):
    with pytest.raises(RuntimeError), progress("failing"):
        raise RuntimeError
    assert screen.cleared == 1
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


def test_a_notebook_gets_a_bar_that_is_emptied(monkeypatch):
    shown = []
    display = types.SimpleNamespace(
        HTML=str,
        display=lambda made, display_id: (
            shown.append(made) or types.SimpleNamespace(update=shown.append)
        ),
    )
    kernel = types.SimpleNamespace(has_trait=lambda name: name == "kernel")
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: kernel))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr(module, "AFTER", 0.0)
    with progress("fit <of> people") as bar:
        bar.step(2, 4)
        while not shown:
            pass
    assert shown[0].startswith("fit &lt;of&gt; people")
    assert "<progress" in shown[0]
    assert shown[-1] == ""


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
