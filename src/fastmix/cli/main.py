"""Entry point of the ``fastmix`` command: errors in one line, documented exit codes."""

import sys
import traceback
import warnings
from collections.abc import Sequence
from enum import IntEnum

from fastmix._text import visible


class ExitCode(IntEnum):
    """Exit codes of the command."""

    OK = 0
    CHECK_FAILED = 1
    USAGE = 2
    DATA = 3
    BUDGET = 4
    MISSING_PACKAGE = 5
    INTERNAL = 6
    INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    try:
        return _main(sys.argv[1:] if arguments is None else list(arguments))
    except KeyboardInterrupt:
        return _fail("interrupted.", ExitCode.INTERRUPTED)


def _main(arguments: list[str]) -> int:
    try:
        from fastmix.cli.app import run
        from fastmix.errors import (
            BudgetError,
            DataError,
            LowAccuracyWarning,
            PrivacyLeakWarning,
            WeakPrivacyWarning,
        )
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("fastmix"):
            raise
        message = f'the command needs {error.name}: pip install "fastmix[cli]".'
        return _fail(message, ExitCode.MISSING_PACKAGE)
    with warnings.catch_warnings():
        # Warnings of other libraries may quote what they were given.
        warnings.simplefilter("ignore")
        for ours in (LowAccuracyWarning, PrivacyLeakWarning, WeakPrivacyWarning):
            warnings.simplefilter("always", ours)
        warnings.showwarning = _show_warning
        try:
            return run(arguments)
        except BudgetError as error:
            return _fail(str(error), ExitCode.BUDGET)
        except DataError as error:
            return _fail(str(error), ExitCode.DATA)
        except ImportError as error:
            return _fail(str(error), ExitCode.MISSING_PACKAGE)
        except OSError as error:
            if error.strerror is None and _is_ours(error):
                return _fail(str(error), ExitCode.DATA)
            # Only the name of the file and the system's sentence: no contents.
            name = f"{error.filename}: " if error.filename else ""
            return _fail(f"{name}{error.strerror or type(error).__name__}.", ExitCode.DATA)
        except (TypeError, ValueError) as error:
            if not _is_ours(error):
                return _fail(_withheld(error), ExitCode.INTERNAL)
            return _fail(str(error), ExitCode.USAGE)
        except MemoryError:
            advice = "Use fewer columns or categories, or --engine stream."
            return _fail(f"there is not enough memory. {advice}", ExitCode.DATA)
        except Exception as error:
            return _fail(_withheld(error), ExitCode.INTERNAL)


def _fail(message: str, code: int) -> int:
    print(f"fastmix: {visible(' '.join(message.split()))}", file=sys.stderr)
    return int(code)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    print(f"fastmix: warning: {visible(' '.join(str(message).split()))}", file=sys.stderr)


def _places(error: BaseException) -> list[tuple[str, int]]:
    """Return the modules and lines that an error came through, where it was raised last."""
    frames = traceback.walk_tb(error.__traceback__)
    return [(str(frame.f_globals.get("__name__")), line) for frame, line in frames]


def _is_ours(error: BaseException) -> bool:
    """Tell whether fastmix itself raised the error: its sentences quote no value of the data."""
    return [name.startswith("fastmix") for name, _ in _places(error)][-1:] == [True]


def _withheld(error: BaseException) -> str:
    """Say where an unexpected error came from; its own message may quote data."""
    ours = [f"{name}, line {line}" for name, line in _places(error) if name.startswith("fastmix")]
    place = (ours or ["fastmix"])[-1]
    return (
        f"internal error ({type(error).__name__} under {place}); its message is withheld because "
        f"it may quote data. Please report it."
    )
