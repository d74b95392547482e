"""Entry point of the ``fastmix`` command: errors in one line, documented exit codes."""

import sys
import traceback
import warnings
from collections.abc import Sequence
from enum import IntEnum

from fastmix import errors
from fastmix._text import visible, without_password
from fastmix.cli._startup import leave_out_slow_packages


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
        with warnings.catch_warnings():
            # Warnings of other libraries may quote what they were given.
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", errors.LowAccuracyWarning)
            warnings.simplefilter("always", errors.MixedUnitsWarning)
            warnings.simplefilter("always", errors.PrivacyLeakWarning)
            warnings.simplefilter("always", errors.WeakPrivacyWarning)
            warnings.showwarning = lambda message, *_, **__: _say(f"warning: {message}")
            if arguments is None:
                leave_out_slow_packages()
                arguments = sys.argv[1:]
            from fastmix.cli.app import run  # a second, in which an interrupt is one line, too

            return run(list(arguments))
    except (Exception, KeyboardInterrupt) as error:
        message, code = _described(error)
        _say(message)
        return int(code)


def _say(message: str) -> None:
    print(f"fastmix: {without_password(visible(' '.join(message.split())))}", file=sys.stderr)


def _described(error: BaseException) -> tuple[str, ExitCode]:
    """Return the message for an error, without a value of the data, and its exit code."""
    frames = traceback.walk_tb(error.__traceback__)
    places = [(str(frame.f_globals.get("__name__")), line) for frame, line in frames]
    # The sentences of fastmix itself quote no value of the data.
    ours = places[-1][0].startswith("fastmix")
    match error:
        case KeyboardInterrupt():
            return "interrupted.", ExitCode.INTERRUPTED
        case errors.BudgetError():
            return str(error), ExitCode.BUDGET
        case errors.DataError():
            return str(error), ExitCode.DATA
        case ModuleNotFoundError():
            message = f'the command needs {error.name}: pip install "fastmix[cli]".'
            return message, ExitCode.MISSING_PACKAGE
        case ImportError():
            return str(error), ExitCode.MISSING_PACKAGE
        case OSError() if not (ours and error.strerror is None):
            # Only the name of the file and the system's sentence: no contents.
            name = f"{error.filename}: " if error.filename else ""
            return f"{name}{error.strerror or type(error).__name__}.", ExitCode.DATA
        case OSError():
            return str(error), ExitCode.DATA
        case TypeError() | ValueError() if ours:
            return str(error), ExitCode.USAGE
        case MemoryError():
            advice = "Use fewer columns or categories, or --engine stream."
            return f"there is not enough memory. {advice}", ExitCode.DATA
    name, line = [place for place in places if place[0].startswith("fastmix")][-1]
    message = (
        f"internal error ({type(error).__name__} under {name}, line {line}); its message is "
        "withheld because it may quote data. Please report it."
    )
    return message, ExitCode.INTERNAL
