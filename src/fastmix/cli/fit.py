"""``fastmix fit``: a private regression of a table, with model, certificate and report."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from fastmix._validation import check_choice, value_error
from fastmix.accounting import BudgetAccountant
from fastmix.certificate.explain import headline
from fastmix.cli import _options as options
from fastmix.cli._console import print_json, print_table, print_text, working
from fastmix.cli._folder import FILES, ModelFolder, model_folder
from fastmix.data import Report, Streaming
from fastmix.data.dask import Cluster
from fastmix.errors import DataError
from fastmix.estimators import PrivateLinearRegression
from fastmix.tables import (
    Columns,
    Number,
    PublicBounds,
    encode,
    read_bounds,
    read_columns,
    table_bytes,
    table_chunks,
    table_fields,
)
from fastmix.tables.encode import needed
from fastmix.tables.model import SavedModel, bound_pair
from fastmix.tables.read import inferred_numbers
from fastmix.tables.report import fit_report, minutes, minutes_in_words

#: Tables that take more bytes in memory are read in chunks.
_LARGE = 1 << 30

#: Bytes of a file of a fit that do not depend on the number of columns, with a wide margin.
_ROOM = 1 << 18

#: Methods that have standard errors.
_INFERRING = ("auto", "adassp", "fast_ihm", "ihm")

EXAMPLES = (
    "fastmix fit people.csv --target income --bounds bounds.toml --epsilon 1 --delta 1e-6",
    "fastmix fit people.csv --target income --bounds bounds.toml --features age,city --out small",
    "fastmix fit people.parquet --target income --bounds bounds.toml --engine stream --out large",
)


def command(
    data: Annotated[
        Path, typer.Argument(help="CSV, Parquet, Arrow, Feather or NPZ file; a folder of them.")
    ],
    target: options.Target,
    epsilon: options.Epsilon = 1.0,
    delta: options.Delta = None,
    bounds: Annotated[Path | None, typer.Option(help="Bounds file; see 'fastmix bounds'.")] = None,
    features: Annotated[str, typer.Option(help="Features to use, with commas; all.")] = "",
    method: options.MethodName = "auto",
    intercept: Annotated[bool, typer.Option(help="Fit an intercept.")] = True,
    intervals: Annotated[
        bool | None,
        typer.Option(help="Standard errors, for 5% of the budget; where the method has them."),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(help="memory, stream (block by block), dask (a cluster), or auto: by size."),
    ] = "auto",
    scheduler: Annotated[
        str, typer.Option(help="Address of a Dask scheduler; a cluster of this machine by default.")
    ] = "",
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
    json: options.Json = False,
) -> None:
    """Fit a private linear regression to a table; write model, certificate and report."""
    if (bounds is None) != unsafe_bounds_from_data:
        raise ValueError(
            "bounds must be given from public knowledge: write a file with 'fastmix bounds' and "
            "pass --bounds (or, for a result that is NOT PRIVATE, --unsafe-bounds-from-data alone)."
        )
    options.check_epsilon(epsilon)
    names = [name.strip() for name in features.split(",") if name.strip()]
    model = PrivateLinearRegression(
        epsilon=epsilon,
        delta=delta,
        method=method,
        fit_intercept=intercept,
        inference=method in _INFERRING if intervals is None else intervals,
        accountant=None if ledger is None else BudgetAccountant.load(ledger),
    )
    model._check_parameters()  # before a large table is read
    check_choice("engine", engine, ("auto", "memory", "stream", "dask"))
    if scheduler and engine != "dask":
        raise value_error("scheduler", "be given with --engine dask", scheduler)
    if bounds is None and engine not in ("auto", "memory"):
        raise value_error("engine", "be memory when bounds are taken from the data", engine)
    public = None if bounds is None else _public(bounds, target, names)
    columns = table_fields(data) if public is None else public.columns(intercept)
    room = _ROOM + sum(1024 + 48 * len(name.encode(errors="replace")) for name in columns)
    with (
        _charge_told(model.accountant),
        model_folder(out, force=force, room=room, inputs=(data, bounds, ledger)) as folder,
    ):
        if public is None:
            with working("reading"):
                public, X, y = _leaky(data, target, names, intercept)
            seconds = _timed(lambda _: model.fit(X, y))
        else:
            model.set_params(
                bounds_X=public.feature_bounds(intercept),
                bounds_y=(public.target.lower, public.target.upper),
                data_norm=public.data_norm,
            )
            seconds = _fit(model, data, public, engine, scheduler)
        saved, model.privacy_ = bound_pair(model, public)
        report = fit_report(model, public, seconds)
        texts = (saved.to_json(), model.privacy_.to_json(), report)
        _publish(folder, texts, charged=ledger is not None)
    (_print_json if json else _print_text)(model, saved, out, seconds)


@contextmanager
def _charge_told(budget: BudgetAccountant | None) -> Iterator[None]:
    """Say whether the ledger was charged if an interrupt ends the fit."""
    if budget is None:
        yield
        return
    before = len(budget)
    try:
        yield
    except KeyboardInterrupt:
        if len(budget) > before:
            line = "the ledger was charged. The charge stands, because noise may have been drawn."
        else:
            line = "nothing was charged to the ledger."
        print(f"fastmix: {line}", file=sys.stderr)
        raise


def _publish(folder: ModelFolder, texts: tuple[str, str, str], charged: bool) -> None:
    """Write the files of a fit; if that fails, say what the failure has cost."""
    try:
        folder.publish(dict(zip(FILES, texts, strict=True)))
    except OSError as error:
        spent = " The ledger was charged for this fit." if charged else ""
        raise DataError(
            f"The model could not be written to {folder.target.name}: {error.strerror}. What was "
            f"there before is unchanged.{spent}"
        ) from None


def _public(bounds: Path, target: str, names: list[str]) -> PublicBounds:
    """Read the bounds file, and keep the features that are asked for."""
    public = read_bounds(bounds)
    if public.target.name != target:
        raise value_error("target", f"be that of the bounds file, {public.target.name!r}", target)
    return public.select(names) if names else public


def _fit(
    model: PrivateLinearRegression, data: Path, public: PublicBounds, engine: str, scheduler: str
) -> float:
    """Fit the table where the engine says, and return the seconds that it took."""
    intercept = model.fit_intercept
    if engine == "auto":
        large = data.is_dir() or table_bytes(data, public, intercept=intercept) > _LARGE
        engine = "stream" if large else "memory"
    if engine == "memory":
        with working("reading"):
            X, y = _encoded(data, read_columns(data, *needed(public)), public, intercept)
        return _timed(lambda _: model.fit(X, y))
    with _client(scheduler) if engine == "dask" else nullcontext() as client:
        executor = Streaming() if client is None else Cluster(client)
        table = table_chunks(data, public, intercept=intercept, executor=executor)
        return _timed(lambda report: model.fit_chunks(table, report=report))


@contextmanager
def _client(scheduler: str) -> Iterator[Any]:
    """Give a client of a Dask cluster: the one at an address, or a new one on this machine."""
    try:
        distributed = import_module("distributed")
    except ImportError:
        raise ImportError('--engine dask needs: pip install "fastmix[dask]".') from None
    # With certificates of its own, so that nobody else on this machine can use the cluster.
    local = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "security": True}
    with (
        nullcontext(scheduler) if scheduler else distributed.LocalCluster(**local) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def _timed(fit: Callable[[Report], Any]) -> float:
    """Run a fit, which may report its passes, and return the seconds that it took."""
    started = time.perf_counter()
    with working("fitting") as say:
        fit(lambda name, part: say(f"{name} {part:.0%}"))
    return time.perf_counter() - started


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
        if max(-low, high) > 1e100:
            raise DataError(f"{data.name}: column {name!r} must be at most 1e100 in magnitude.")
        numbers.append(Number(name, low, high if high > low else low + 1.0))
    public = PublicBounds(numbers[0], tuple(numbers[1:]), "drop")
    return public, *_encoded(data, columns, public, intercept)


def _encoded(data: Path, columns: Columns, public: PublicBounds, intercept: bool) -> Any:
    X, y = encode(columns, public, intercept=intercept)
    if not len(y):
        raise DataError(f"{data.name} must have at least one row to fit.")
    return X, y


def _print_json(model: PrivateLinearRegression, saved: SavedModel, out: Path, took: float) -> None:
    data = saved.to_dict()
    names = ("epsilon", "delta", "method", "n", "columns", "coef", "intercept")
    stored = {name: data[name] for name in (*names, "coef_std", "intercept_std")}
    leaks = {"private": saved.private, "leaks": list(model.privacy_.leaks)}
    print_json({**leaks, **stored, "minutes": minutes(took), "out": str(out)})


def _print_text(model: PrivateLinearRegression, saved: SavedModel, out: Path, took: float) -> None:
    header = ["column", "coefficient"]
    names = (*saved.bounds.columns(saved.fit_intercept), "intercept")
    values = (*saved.coef, saved.intercept)
    rows = [[name, f"{value:.6g}"] for name, value in zip(names, values, strict=True)]
    if model.inference:
        header.append("95% interval")
        for row, (low, high) in zip(rows, model.conf_int(intercept=True), strict=True):
            row.append(f"{low:.6g} to {high:.6g}")
    print_text(f"Private regression of {saved.bounds.target.name}", "", style="bold")
    print_table(header, rows)
    print_text(
        "",
        headline(model.privacy_),
        f"Method {saved.method}, {saved.n:,} rows, {minutes_in_words(took)}.",
        f"Wrote model.json, certificate.json and report.html to {out}.",
    )
