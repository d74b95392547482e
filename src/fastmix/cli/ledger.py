"""``fastmix ledger``: a privacy budget in a file, shared by several fits."""

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from fastmix._validation import check_choice
from fastmix.accounting import BudgetAccountant
from fastmix.accounting.charge import mixed
from fastmix.cli import _options as options
from fastmix.cli._console import print_json, print_table, print_text
from fastmix.errors import BudgetError, DataError
from fastmix.estimators import PrivateLinearRegression

EXAMPLES = (
    "fastmix ledger new budget.jsonl --epsilon 3 --delta 1e-6",
    "fastmix ledger show budget.jsonl",
    "fastmix ledger new persons.jsonl --epsilon 3 --delta 1e-6 --unit person",
    "fastmix fit people.csv --target income --bounds bounds.toml --delta 1e-7 "
    "--ledger budget.jsonl --out charged",
)

command = typer.Typer(
    help="Keep a privacy budget in a file that several fits share.", no_args_is_help=True
)

#: Rows and columns of typical tables: with few rows, usual, and with many columns.
_SIZES = ((2_000, 5), (100_000, 10), (50_000, 280))

_File = Annotated[Path, typer.Argument(help="The budget's file, on a local disk.")]


@command.command()
def new(
    file: _File,
    epsilon: Annotated[float, typer.Option(help="Epsilon of the budget.")],
    delta: Annotated[float, typer.Option(help="Delta of the budget.")],
    rule: Annotated[
        str, typer.Option(help="How fits add up: renyi (all methods), gaussian or basic.")
    ] = "renyi",
    unit: Annotated[
        str, typer.Option(help="'person' refuses fits that protect single rows; 'any' takes all.")
    ] = "any",
    json: options.Json = False,
) -> None:
    """Create a budget; pass it to fits with --ledger."""
    if file.exists():
        raise ValueError(
            f"The file {str(file)!r} already exists, and a ledger is never replaced. Choose "
            "another name, or pass the existing ledger to 'fastmix fit --ledger'."
        )
    who = None if check_choice("unit", unit, ("any", "person")) == "any" else unit
    _show(BudgetAccountant(epsilon, delta, ledger=file, rule=rule, unit=who), json)


@command.command()
def show(file: _File, json: options.Json = False) -> None:
    """Show the charges, the total and the rest."""
    if not file.is_file():
        raise DataError(
            f"There is no ledger {str(file)!r}. Make one with 'fastmix ledger new', or check the "
            "path."
        )
    _show(BudgetAccountant.load(file), json)


def _show(budget: BudgetAccountant, json: bool) -> None:
    total, left = budget.total(), budget.remaining()
    charges = budget.charges
    if json:
        limits = {"epsilon": budget.epsilon, "delta": budget.delta, "rule": budget.rule}
        limits |= {"unit": budget.unit or "any"}
        told = [
            {"label": c.label, "time": c.time, "epsilon": c.spent.epsilon, "delta": c.spent.delta}
            | {"rows_per_person": c.rows_per_person, "public_rows": c.public_rows}
            | {"leaks": c.leaks, **dict(c.notes)}
            for c in charges
        ]
        spent: dict[str, Any] = {
            "spent": total.epsilon,
            "left": left.epsilon,
            "mixed_units": bool(mixed(charges)),
        }
        spent |= {"left_default": _left_for_default(budget, left.epsilon)}
        print_json({**limits, **spent, "charges": told})
        return
    if charges:
        notes = [dict(charge.notes) for charge in charges]
        kinds = [kind for kind in ("target", "file", "model") if any(kind in n for n in notes)]
        rows = [
            [
                charge.label,
                charge.time[:16].replace("T", " "),
                *(note.get(kind, "") for kind in kinds),
                "NOT PRIVATE" if charge.leaks else f"{charge.spent.epsilon:.4g}",
                f"{charge.spent.delta:.3g}",
            ]
            for charge, note in zip(charges, notes, strict=True)
        ]
        print_table(["fit", "time (UTC)", *kinds, "epsilon", "delta"], rows)
        leaky = [charge for charge in charges if charge.leaks]
        print_text(*(f"{c.label} is NOT PRIVATE: {'; '.join(c.leaks)}." for c in leaky), "")
    for message in mixed(charges):
        print_text(f"Note: {message}")
    if budget.unit is not None:
        print_text("This budget protects persons: it refuses fits that protect single rows.")
    count = len(charges)
    print_text(
        f"Budget: epsilon {budget.epsilon:g} at delta {budget.delta:g}, rule {budget.rule}.",
        f"Spent: epsilon {total.epsilon:.6g}, by {count} charge{'' if count == 1 else 's'}.",
        f"Left: one more fit of ihm, fast_ihm or adassp with epsilon up to about "
        f"{left.epsilon:.3g}, or of the default method with delta {_delta(budget):.2g} and epsilon "
        f"up to {_span(*_left_for_default(budget, left.epsilon))}."
        if math.isfinite(budget.epsilon)
        else "It records every fit and refuses none.",
    )
    if count and budget.rule != "basic" and 0.0 < left.epsilon < math.inf:
        print_text(
            f"By the rule {budget.rule}, several fits together can cost less than the sum of their "
            "epsilons, so spent and left may add up to more than the budget."
        )


def _left_for_default(budget: BudgetAccountant, most: float) -> tuple[float, float]:
    """Return the smallest and largest epsilon that a default fit may have, by size and options."""
    if not 0.0 < most < math.inf:
        return most, most
    found = [
        _covered(budget, most, n, d, inference=inference)
        for n, d in _SIZES
        for inference in (True, False)
    ]
    return min(found), max(found)


def _covered(budget: BudgetAccountant, most: float, n: int, d: int, *, inference: bool) -> float:
    """Return the largest epsilon of a default fit of one size that the budget still covers."""

    def fits(epsilon: float) -> bool:
        bounds: Any = {"bounds_X": (-1, 1), "bounds_y": (-1, 1)}
        asked: Any = {"epsilon": epsilon, "delta": _delta(budget), "inference": inference}
        asked |= {"accountant": budget}
        try:
            budget.check(PrivateLinearRegression(**asked, **bounds).account(n, d))
        except BudgetError:
            return False
        return True

    low, high = 0.0, most
    if fits(most):
        return most
    while high - low > 0.01 * most:
        middle = (low + high) / 2.0
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _span(low: float, high: float) -> str:
    """Return a range in words; both ends are rounded down."""
    low, high = (math.floor(100.0 * end) / 100.0 for end in (low, high))
    return f"{low:g}" if low == high else f"{low:g} to {high:g}, by its size and options"


def _delta(budget: BudgetAccountant) -> float:
    """Return a delta for the next fit: the last charge's, or a tenth of the budget's."""
    charges = budget.charges
    return charges[-1].spent.delta if charges else budget.delta / 10.0
