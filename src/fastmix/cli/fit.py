"""``fastmix fit``: a private regression of a table, with model, certificate and report."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from fastmix._validation import value_error
from fastmix.accounting import BudgetAccountant
from fastmix.cli._console import print_json, print_table, print_text, working
from fastmix.errors import DataError
from fastmix.estimators import PrivateLinearRegression
from fastmix.estimators.explanation import headline
from fastmix.render import fit_report
from fastmix.saved import SavedModel, fit_facts
from fastmix.tables import Category, Number, PublicBounds, encode, read_bounds, read_columns
from fastmix.tables.read import inferred_numbers

__all__ = ["command"]

EXAMPLES = (
    "fastmix fit people.csv --target income --bounds bounds.toml --epsilon 1 --delta 1e-6",
    "fastmix fit people.csv --target income --bounds bounds.toml --features age,city --out small",
)


def command(
    data: Annotated[Path, typer.Argument(help="CSV, Parquet, Arrow, Feather or NPZ file.")],
    target: Annotated[str, typer.Option(help="Column to predict.")],
    epsilon: Annotated[float, typer.Option(help="Privacy budget.")] = 1.0,
    delta: Annotated[
        float | None, typer.Option(help="Failure probability; 1/n^2 by default.")
    ] = None,
    bounds: Annotated[Path | None, typer.Option(help="Bounds file; see 'fastmix bounds'.")] = None,
    features: Annotated[str, typer.Option(help="Features to use, with commas; all.")] = "",
    method: Annotated[
        str, typer.Option(help="auto, adassp, dp_gd, fast_ihm, ihm or linear_mixing.")
    ] = "auto",
    intercept: Annotated[bool, typer.Option(help="Fit an intercept.")] = True,
    intervals: Annotated[
        bool | None,
        typer.Option(help="Standard errors, for 5% of the budget; where the method has them."),
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="Shared budget to charge; see 'fastmix ledger'.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for model, certificate, report.")] = Path(
        "model"
    ),
    force: Annotated[bool, typer.Option("--force", help="Replace a model in the folder.")] = False,
    unsafe_bounds_from_data: Annotated[
        bool,
        typer.Option(
            "--unsafe-bounds-from-data",
            help="Take bounds from the data: the result is NOT PRIVATE and says so.",
        ),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Fit a private linear regression to a table; write model, certificate and report."""
    if (bounds is None) != unsafe_bounds_from_data:
        raise ValueError(
            "bounds must be given from public knowledge: write a file with 'fastmix bounds' and "
            "pass --bounds (or, for a result that is NOT PRIVATE, --unsafe-bounds-from-data alone)."
        )
    if (out / "model.json").exists() and not force:
        raise value_error("out", "hold no model yet, or use --force", str(out))
    names = [name.strip() for name in features.split(",") if name.strip()]
    model = PrivateLinearRegression(
        epsilon=epsilon,
        delta=delta,
        method=method,
        fit_intercept=intercept,
        inference=method in ("auto", "adassp", "fast_ihm", "ihm")
        if intervals is None
        else intervals,
        accountant=None if ledger is None else BudgetAccountant.load(ledger),
    )
    model._check_parameters()  # before a large table is read
    with working("reading"):
        if bounds is None:
            public, X, y = _leaky(data, target, names, intercept)
        else:
            public, X, y = _table(data, target, names, read_bounds(bounds), intercept)
            model.set_params(
                bounds_X=public.feature_bounds(intercept),
                bounds_y=(public.target.lower, public.target.upper),
                data_norm=public.data_norm,
            )
    started = time.perf_counter()
    with working("fitting"):
        model.fit(X, y)
    seconds = time.perf_counter() - started
    facts = {**model.privacy_.data, "missing": public.missing, "encoding": public.to_dict()}
    model.privacy_ = replace(model.privacy_, data=facts)
    _write(model, public, out, seconds)
    (_print_json if json else _print_text)(model, public, out, seconds)


def _table(
    data: Path, target: str, names: list[str], public: PublicBounds, intercept: bool
) -> tuple[PublicBounds, Any, Any]:
    if public.target.name != target:
        raise value_error("target", f"be that of the bounds file, {public.target.name!r}", target)
    public = public.select(names) if names else public
    numbers = [f.name for f in public.features if isinstance(f, Number)]
    categories = {f.name: f.categories for f in public.features if isinstance(f, Category)}
    columns = read_columns(data, [target, *numbers], categories)
    X, y = encode(columns, public, intercept=intercept)
    if not len(y):
        raise DataError(f"{data.name} must have at least one row to fit.")
    return public, X, y


def _leaky(
    data: Path, target: str, names: list[str], intercept: bool
) -> tuple[PublicBounds, Any, Any]:
    """Read a table with bounds taken from it, which is not private and is marked so."""
    found = inferred_numbers(data)
    wanted = names or [name for name in found if name != target]
    for name in (target, *wanted):
        if name not in found:
            raise DataError(
                f"{data.name} has no column of numbers {name!r}; categories need a bounds file."
            )
    columns = read_columns(data, [target, *wanted], {})
    numbers = []
    for name in (target, *wanted):
        values = columns.numbers[name][np.isfinite(columns.numbers[name])]
        low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
        numbers.append(Number(name, low, high if high > low else low + 1.0))
    public = PublicBounds(numbers[0], tuple(numbers[1:]), "drop")
    X, y = encode(columns, public, intercept=intercept)
    if not len(y):
        raise DataError(f"{data.name} must have at least one row to fit.")
    return public, X, y


def _write(model: PrivateLinearRegression, public: PublicBounds, out: Path, seconds: float) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / "model.json").write_text(SavedModel.of(model, public).to_json(), encoding="utf-8")
    (out / "certificate.json").write_text(model.privacy_.to_json(), encoding="utf-8")
    report = fit_report(fit_facts(model, public, seconds))
    (out / "report.html").write_text(report, encoding="utf-8")


def _print_json(
    model: PrivateLinearRegression, public: PublicBounds, out: Path, seconds: float
) -> None:
    std = getattr(model, "coef_std_", None)
    print_json(
        {
            "private": model.privacy_.private,
            "leaks": list(model.privacy_.leaks),
            "epsilon": model.privacy_.epsilon,
            "delta": model.privacy_.delta,
            "method": model.method_,
            "n": model.privacy_.data["n_samples"],
            "columns": list(public.columns(model.fit_intercept)),
            "coef": model.coef_.tolist(),
            "intercept": model.intercept_,
            "coef_std": None if std is None else std.tolist(),
            "intercept_std": getattr(model, "intercept_std_", None),
            "seconds": seconds,
            "out": str(out),
        }
    )


def _print_text(
    model: PrivateLinearRegression, public: PublicBounds, out: Path, seconds: float
) -> None:
    header = ["column", "coefficient"]
    rows = [
        [name, f"{value:.6g}"]
        for name, value in zip(
            (*public.columns(model.fit_intercept), "intercept"),
            (*model.coef_.tolist(), model.intercept_),
            strict=True,
        )
    ]
    if model.inference:
        header.append("95% interval")
        for row, (low, high) in zip(rows, model.conf_int(intercept=True), strict=True):
            row.append(f"{low:.6g} to {high:.6g}")
    print_text(f"Private regression of {public.target.name}", "", style="bold")
    print_table(header, rows)
    print_text(
        "",
        headline(model.privacy_),
        f"Method {model.method_}, {model.privacy_.data['n_samples']:,} rows, {seconds:.2f} s.",
        f"Wrote model.json, certificate.json and report.html to {out}.",
    )
