"""The application: one module per command, each with a function ``command``.

Only the module of the command that runs is imported: the others would take seconds, and a help
page needs one line of each.
"""

import os
from collections.abc import Container
from importlib import import_module
from typing import Annotated

import typer

import fastmix
from fastmix._text import visible, without_password
from fastmix.cli.main import ExitCode

#: Lines of the help page by the name of their command, in its order.
COMMANDS = {
    "demo": "Fit a private regression to 327,346 real flights, and compare it with least squares.",
    "bounds": "Write a bounds file to fill in; with --epsilon, find the bounds privately.",
    "check": "Compare a table with its bounds file, on this screen only: the result is NOT "
    "private.",
    "fit": "Fit a private regression to a table; write model, certificate and report.",
    "summary": "Print coefficients with standard errors, z, p-values and intervals.",
    "predict": "Write predictions for the rows of a table to a file.",
    "evaluate": "Print private scores of a model, with a budget of their own.",
    "compare": "Rank feature sets privately, and fit the best with the rest of the budget.",
    "explain": "Explain in plain words what a certificate guarantees, and verify it.",
    "plan": "Predict error, time and memory of a fit, without data.",
    "calibrate": "Show the noise levels that meet a privacy budget, without data.",
    "audit": "Test every privacy claim by experiment, with lower bounds on epsilon.",
    "key": "Make a pair of keys: sign fits with NAME.key, and publish NAME.pub.",
    "ledger": "Keep a privacy budget in a file that several fits share.",
}

# Typer keeps its own copy of click, whose base of all usage errors has no public name.
_USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[2]

#: Set by a shell that asks for completions, which need the options of every command.
_COMPLETES = "_FASTMIX_COMPLETE"

_EXIT_CODES = (
    "Exit codes: 0 success; 1 a check failed; 2 wrong argument or bounds file; 3 a file cannot be "
    "read or written, or the data do not match the bounds; 4 the budget does not cover the fit; "
    "5 a package is missing; 6 a bug in fastmix; 130 interrupted. No command prints a value of "
    "the data; the shares that 'check' prints are not private."
)


def make_app(wanted: Container[str] = frozenset(COMMANDS)) -> typer.Typer:
    """Return the application; only ``wanted`` commands are loaded, the others have a help line."""
    app = typer.Typer(
        name="fastmix",
        help="Differentially private regression for tables about people.",
        epilog=_EXIT_CODES,
        no_args_is_help=True,
        # Tracebacks of Typer show local variables: values of the data among them.
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_fastmix)
    for name, line in COMMANDS.items():
        if name not in wanted:
            app.command(name, help=line)(_not_loaded)
            continue
        module = import_module(f"fastmix.cli.{name}")
        epilog = "\n\n".join(["[bold]Examples[/bold]", *(f"$ {each}" for each in module.EXAMPLES)])
        if isinstance(module.command, typer.Typer):
            app.add_typer(module.command, name=name, epilog=epilog)
        else:
            app.command(name, epilog=epilog)(module.command)
    return app


def _version(wanted: bool) -> None:
    if wanted:
        print(f"fastmix {fastmix.__version__}")
        raise typer.Exit


def _fastmix(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Take the options before a command."""


def _not_loaded() -> None:
    """Raise an error: the help page names this command without loading it."""
    raise AssertionError("the command was not loaded")


def run(arguments: list[str]) -> int:
    """Run a command and return its exit code; errors of fastmix itself are left to the caller."""
    # No option before the command takes a value.
    named = [argument for argument in arguments if not argument.startswith("-")]
    command = typer.main.get_command(make_app(COMMANDS if _COMPLETES in os.environ else named[:1]))
    try:
        code = command.main(args=arguments, prog_name="fastmix", standalone_mode=False)
    except typer.Exit as done:
        code = done.exit_code
    except typer.Abort:
        code = int(ExitCode.INTERRUPTED)
    except _USAGE_ERROR as error:
        message = error.format_message()  # type: ignore[attr-defined]
        context = getattr(error, "ctx", None)
        where = context.command_path if context is not None else "fastmix"
        if message:
            line = without_password(visible(" ".join(message.split()).removesuffix(".")))
            typer.echo(f"fastmix: {line}. See '{where} --help'.", err=True)
        code = int(ExitCode.USAGE)
    if code == ExitCode.INTERRUPTED:  # Typer makes an exit code of an interrupt
        raise KeyboardInterrupt
    return code if isinstance(code, int) else 0
