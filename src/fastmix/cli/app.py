"""The commands and how they hang together: one module per command, each with ``command``."""

from typing import Annotated, Any

import typer

import fastmix
from fastmix._text import visible
from fastmix.cli import (
    audit,
    bounds,
    calibrate,
    check,
    compare,
    demo,
    evaluate,
    explain,
    fit,
    ledger,
    plan,
    predict,
    summary,
)
from fastmix.cli.main import ExitCode

#: Modules by the name of their command, in the order of the help page.
COMMANDS: dict[str, Any] = {
    module.__name__.rpartition(".")[2]: module
    for module in (
        demo,
        bounds,
        check,
        fit,
        summary,
        predict,
        evaluate,
        compare,
        explain,
        plan,
        calibrate,
        ledger,
        audit,
    )
}

# Typer keeps its own copy of click, whose base of all usage errors has no public name.
_USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[2]

_EXIT_CODES = (
    "Exit codes: 0 success; 1 a check failed; 2 wrong argument or bounds file; 3 a file cannot be "
    "read or written, or the data do not match the bounds; 4 the budget does not cover the fit; "
    "5 a package is missing; 6 a bug in fastmix; 130 interrupted. No command prints a value of "
    "the data; the shares that 'check' prints are not private."
)

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


def _version(wanted: bool) -> None:
    if wanted:
        print(f"fastmix {fastmix.__version__}")
        raise typer.Exit


@app.callback()
def _fastmix(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Take options that stand before a command."""


for _name, _module in COMMANDS.items():
    _epilog = "\n\n".join(["[bold]Examples[/bold]", *(f"$ {line}" for line in _module.EXAMPLES)])
    if isinstance(_module.command, typer.Typer):
        app.add_typer(_module.command, name=_name, epilog=_epilog)
    else:
        app.command(_name, epilog=_epilog)(_module.command)


def run(arguments: list[str]) -> int:
    """Run a command and return its exit code; errors of fastmix itself are left to the caller."""
    command = typer.main.get_command(app)
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
            line = visible(" ".join(message.split()).removesuffix("."))
            typer.echo(f"fastmix: {line}. See '{where} --help'.", err=True)
        code = int(ExitCode.USAGE)
    if code == ExitCode.INTERRUPTED:  # Typer makes an exit code of an interrupt
        raise KeyboardInterrupt
    return code if isinstance(code, int) else 0
