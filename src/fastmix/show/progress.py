"""Progress of long work: a bar with the time left, on a terminal or in a notebook.

A bar shows steps of the public plan, and shares of passes whose number is public. It vanishes at
the end, because exact times can leak information: none stays on the screen or in a notebook.
"""

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from html import escape
from importlib import import_module
from importlib.util import find_spec
from threading import Event, Thread
from typing import Any

from fastmix._text import visible

#: Seconds of work before a bar appears, and between two drawings of it.
AFTER, TICK = 2.0, 0.25
#: The share of a step that passing time fills at most, before the next step is reported.
MOST = 0.95


class Pace:
    """How far work has come, in units of a public plan; between two reports, time moves it on."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._first = self._began = self._at = clock()
        self._done, self._total, self._step = 0.0, 0.0, 1.0
        self._unit: float | None = None  # seconds per unit of the plan before this one

    def reach(self, done: float, total: float, step: float = 1.0) -> None:
        """Say how many units are done, and how many the next report may add.

        A smaller number than before begins a new plan, and so does one that has no total.
        """
        now = self._clock()
        if done < self._done or not total:
            complete = self._total and self._done >= self._total
            self._unit = (self._at - self._began) / self._total if complete else None
            self._began = now
        self._at, self._done, self._total, self._step = now, done, total, step

    @property
    def seconds(self) -> float:
        """Seconds since the beginning."""
        return self._clock() - self._first

    def now(self) -> tuple[float | None, float | None]:
        """Return the share that is done and the seconds left, each None where not known."""
        spent = self._at - self._began
        unit = spent / self._done if self._done and spent else self._unit
        if not self._total or not unit:
            return None, None
        since = (self._clock() - self._at) / unit
        done = min(self._done + min(since, MOST * self._step), self._total)
        return done / self._total, (self._total - done) * unit


class Screen(ABC):
    """Where a bar is drawn."""

    @abstractmethod
    def draw(self, words: str, pace: Pace) -> None:
        """Draw the bar, in place of the one before."""

    @abstractmethod
    def clear(self) -> None:
        """Remove the bar."""


class _Terminal(Screen):
    """A line below what is printed meanwhile."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        # What is printed goes above the bar, unless it goes elsewhere.
        self._live = Live(
            console=Console(stderr=True, highlight=False),
            auto_refresh=False,
            transient=True,
            redirect_stdout=sys.stdout.isatty(),
        )

    def draw(self, words: str, pace: Pace) -> None:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        share, _ = pace.now()
        line = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=None if share is None else 1.0, completed=share or 0.0, width=24)
        line.add_row(Text(visible(words)), bar, Text(times(pace)))
        if not self._live.is_started:
            self._live.start()
        self._live.update(line, refresh=True)

    def clear(self) -> None:
        self._live.stop()


class _Notebook(Screen):
    """A bar below the cell."""

    _handle: Any = None

    def draw(self, words: str, pace: Pace) -> None:
        share, _ = pace.now()
        value = "" if share is None else f' value="{share:.3f}"'
        self._show(f"{escape(words)} <progress{value}></progress> {times(pace)}")

    def clear(self) -> None:
        if self._handle is not None:
            self._show("")

    def _show(self, made: str) -> None:
        shown: Any = import_module("IPython.display")
        if self._handle is None:
            self._handle = shown.display(shown.HTML(made), display_id=True)
        else:
            self._handle.update(shown.HTML(made))


def times(pace: Pace) -> str:
    """Return the time since the beginning, and the time left, where it is known."""
    _, left = pace.now()
    said = _clock_time(pace.seconds)
    return said if left is None else f"{said}, about {_clock_time(left)} left"


def _clock_time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class Bar:
    """Called with what is being done; draws it where there is a screen, or prints lines."""

    def __init__(self, title: str, screen: Screen | None, *, lines: bool) -> None:
        self._title, self._words, self._screen, self._lines = title, "", screen, lines
        self._stepped, self._pace = False, Pace()
        self._over, self._ticker = Event(), Thread(target=self._tick, daemon=True)

    def say(self, words: str, done: float = 0.0, total: float = 0.0) -> None:
        """Say what is being done, and how much of how much is done, if that is public."""
        self._stepped = False
        self._tell(words)
        self._pace.reach(done, total)

    def step(self, at: int, steps: int, last: float = 1.0) -> None:
        """Say that a step of the plan begins; the last may take ``last`` times as long."""
        self._stepped = True
        self._tell(f"step {at} of {steps}")
        self._pace.reach(at - 1, steps - 1 + last, last if at == steps else 1.0)

    def passing(self, name: str, part: float) -> None:
        """Say how much of a pass over the data is done; without a name, by the bar alone."""
        if name:
            self._tell(f"{name}: {part:.0%}")
        if not self._stepped:
            self._pace.reach(part, 1.0)

    def passed(self, name: str, part: float) -> None:
        """Say that a pass begins or ends, where shares would tell the number of rows."""
        if part in (0.0, 1.0):
            self.passing(name, part)

    def _tell(self, words: str) -> None:
        self._words = words
        if self._lines:
            print(f"[{self._title}] {words}", file=sys.stderr)

    def _tick(self) -> None:
        wait = AFTER
        while self._screen is not None and not self._over.wait(wait):
            words = f"{self._title}: {self._words}" if self._words else self._title
            self._screen.draw(words, self._pace)
            wait = TICK

    def start(self) -> None:
        """Begin to draw, if there is a screen."""
        if self._screen is not None:
            self._ticker.start()

    def stop(self) -> None:
        """Remove what was drawn."""
        self._over.set()
        if self._screen is not None:
            self._ticker.join()
            self._screen.clear()


_active: ContextVar[Bar | None] = ContextVar("fastmix_progress", default=None)


@contextmanager
def progress(title: str, *, verbose: bool = True, lines: bool = False) -> Iterator[Bar]:
    """Give a bar to report to: the one that is shown already, or else a new one if ``verbose``.

    It appears when the work has lasted two seconds. Where there is neither a terminal nor a
    notebook, ``lines`` prints each report.
    """
    bar = _active.get()
    if bar is not None:
        yield bar
        return
    screen = _screen() if verbose else None
    bar = Bar(title, screen, lines=verbose and lines and screen is None)
    token = _active.set(bar) if verbose else None
    bar.start()
    try:
        yield bar
    finally:
        bar.stop()
        if token is not None:
            _active.reset(token)


def _screen() -> Screen | None:
    """Return where a bar can be drawn, if anywhere."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is not None and shell.has_trait("kernel"):
        return _Notebook()
    if sys.stderr.isatty() and find_spec("rich") is not None:
        return _Terminal()
    return None
