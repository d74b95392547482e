"""Progress of long work: a bar of the `rich` package, on a terminal or in a notebook.

A bar shows steps of the public plan, and shares of passes whose number is public. The bar vanishes
at the end, because exact times can leak information: none stays on the screen or in a notebook.
Without rich there is no bar; in a notebook, rich needs ipywidgets.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.util import find_spec
from threading import Timer
from typing import Any

from fastmix._text import visible

#: Seconds of work before a bar appears.
AFTER = 2.0


class Bar:
    """Take reports of what is being done; show them on a screen, or print lines, or neither."""

    def __init__(self, title: str, screen: Any, *, lines: bool) -> None:
        self._title, self._screen, self._lines = title, screen, lines
        self._stepped, self._done = False, 0.0
        if screen is not None:
            self._task = screen.add_task(visible(title), total=None)
            self._timer = Timer(AFTER, screen.start)
            self._timer.daemon = True

    def say(self, words: str, done: float = 0.0, total: float = 0.0) -> None:
        """Say what is being done, and how much of how much is done, if that is public."""
        self._stepped = False
        self._report(words, done, total)

    def step(self, at: int, steps: int, last: float = 1.0) -> None:
        """Say that a step of the plan begins; the last may take ``last`` times as long."""
        self._stepped = True
        self._report(f"step {at} of {steps}", at - 1, steps - 1 + last)

    def passing(self, name: str, part: float) -> None:
        """Say how much of a pass over the data is done; without a name, by the bar alone."""
        words = f"{name}: {part:.0%}" if name else ""
        self._report(words, None if self._stepped else part, 1.0)  # steps go on meanwhile

    def passed(self, name: str, part: float) -> None:
        """Say that a pass begins or ends, where shares would tell the number of rows."""
        if part in (0.0, 1.0):
            self.passing(name, part)

    def _report(self, words: str, done: float | None, total: float) -> None:
        if words and self._lines:
            print(f"[{self._title}] {words}", file=sys.stderr)
        if self._screen is None:
            return
        shown: dict[str, Any] = {}
        if words:
            shown["description"] = visible(f"{self._title}: {words}")
        if done is not None:
            if done < self._done:  # a new count, with a speed of its own
                self._screen.reset(self._task)
            shown |= {"completed": done, "total": total or None}
            self._done = done
        self._screen.update(self._task, **shown)

    def start(self) -> None:
        """Show the bar soon, if there is a screen."""
        if self._screen is not None:
            self._timer.start()

    def stop(self) -> None:
        """Remove the bar."""
        if self._screen is not None:
            self._timer.cancel()
            self._timer.join()
            self._screen.stop()


_active: ContextVar[Bar | None] = ContextVar("fastmix_progress", default=None)


@contextmanager
def progress(title: str, *, verbose: bool = True, lines: bool = False) -> Iterator[Bar]:
    """Give a bar to report to: the one that is shown already, or else a new one if ``verbose``.

    The bar appears when the work has lasted two seconds. Where there is neither a terminal nor a
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


def _screen() -> Any:
    """Return a display of rich that vanishes when it stops; None without a place for a bar."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    notebook = shell is not None and shell.has_trait("kernel")
    drawable = find_spec("ipywidgets") is not None if notebook else sys.stderr.isatty()
    if not drawable or find_spec("rich") is None:
        return None
    from rich import progress as rich
    from rich.console import Console

    return rich.Progress(
        rich.TextColumn("{task.description}", markup=False),
        rich.BarColumn(24),
        rich.TimeElapsedColumn(),
        rich.TextColumn("about"),
        rich.TimeRemainingColumn(),
        rich.TextColumn("left"),
        console=Console(stderr=True, highlight=False),
        transient=True,
        # What is printed goes above the bar, unless it goes elsewhere.
        redirect_stdout=sys.stdout.isatty(),
        refresh_per_second=4,
    )
