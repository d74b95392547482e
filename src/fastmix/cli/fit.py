"""``fastmix fit``: a private regression of a table, with model, certificate and report."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from fastmix._validation import check_choice, value_error
from fastmix.accounting import BudgetAccountant
from fastmix.certificate.explain import headline
from fastmix.cli import _options as options
from fastmix.cli._asked import UNLISTED, Asked, check_target
from fastmix.cli._console import print_json, print_table, print_text
from fastmix.cli._papers import Papers
from fastmix.data import Streaming
from fastmix.data.dask import Cluster
from fastmix.data.encode import table_bytes
from fastmix.data.read import inferred_numbers, read_columns, table_fields
from fastmix.engine.population import Population
from fastmix.errors import DataError
from fastmix.estimators import FAMILIES, PrivateModel
from fastmix.estimators.regression import with_method
from fastmix.files.doubts import doubts
from fastmix.files.report import minutes, minutes_in_words, model_summary
from fastmix.paper import METHODS
from fastmix.schema import PublicBounds
from fastmix.schema.bounds import check_persons
from fastmix.schema.features import Labels, Number
from fastmix.show import RegressionSummary
from fastmix.show.html import LONGEST, number
from fastmix.show.progress import progress

#: Tables that take more bytes in memory are read in chunks.
_LARGE = 1 << 30

_UNSCORED = (
    "No score was released: --score-share 0.05 spends a part of the budget on R², accuracy or the "
    "like; 'fastmix evaluate' spends a budget of its own."
)

EXAMPLES = (
    "fastmix fit people.csv --target income --bounds bounds.toml --epsilon 1 --delta 1e-6",
    "fastmix fit people.csv --target income --bounds bounds.toml --features age,city --out small",
    "fastmix fit people.parquet --target income --bounds bounds.toml --engine stream --out large",
    "fastmix fit people.csv --target income --bounds bounds.toml --family huber --out robust",
)


@options.grouped(Asked)
def command(asked: Asked) -> None:
    """Fit a private regression to a table; write model, certificate and report."""
    asked.check()
    model = _model(asked)
    model._population = asked.population
    model._check_parameters()  # before a large table is read
    check_choice("engine", asked.engine, ("auto", "memory", "stream", "dask"))
    if asked.scheduler and asked.engine != "dask":
        raise value_error("scheduler", "be given with --engine dask", asked.scheduler)
    if asked.bounds is None and asked.engine not in ("auto", "memory"):
        raise value_error("engine", "be memory when bounds are taken from the data", asked.engine)
    public = None
    if asked.bounds is not None:
        public = asked.public(asked.bounds, asked.target, asked.person, asked.weight)
        public = public.select(asked.names) if asked.names else public
        check_persons(public, bool(asked.person), not asked.private_rows)
        check_target(public, asked.family)
    if asked.dry_run:
        from fastmix.cli.plan import dry_run  # which no other fit needs

        dry_run(model, asked, public)
        return
    papers = Papers(asked.papers, asked.sign, asked.audit)
    with (
        _charge_told(model.accountant),
        papers.folder(asked, _words(asked, public)) as publish,
    ):
        if public is None:
            with progress("reading"):
                public = _leaky(asked)
        else:
            model.set_params(
                bounds_X=public.feature_bounds(asked.intercept),
                data_norm=public.data_norm,
                **{model._ends: public.ends},
            )
            if asked.intercept:
                model._categories, model._unlisted = public.categories(), public.unlisted()
        started = time.perf_counter()
        with asked.noted():
            _fit(model, asked, public)
        seconds = time.perf_counter() - started
        model.schema_ = public
        papers.publish(model, publish)
    known = getattr(model, "scores_", None)
    if asked.json:
        scores = {} if known is None else {"scores": known.to_dict()}
        told = {**_numbers(model), **scores, "minutes": minutes(seconds)}
        print_json({**told, "out": str(asked.out)})
        return
    made = model_summary(model)
    print_text(made.title, "", style="bold")
    _print_effects(made, asked.out)
    if known is not None:
        print_text("", *(f"{name} (private): {words}." for name, words in known.in_words()))
        print_text("Scores are of the rows of the fit, with 95% intervals for the noise.")
        if known.baseline:
            print_text(f"{known.baseline.capitalize()} of them.")
    else:
        print_text("", _UNSCORED)
    if found := doubts(model):
        print_text("", found, style="bold")
    if isinstance(public.target, Labels):
        print_text("", f"Rows whose {asked.target} is not in the list count as absent; {UNLISTED}.")
    print_text(
        "",
        headline(model.privacy_),
        f"Method {dict(made.facts)['Method']}, {_size(model)}, {minutes_in_words(seconds)}.",
        f"Wrote model.json, certificate.json and report.html to {asked.out}"
        f"{'' if papers.signer is None else ', signed'}.",
    )


def _numbers(model: Any) -> dict[str, Any]:
    """Return the guarantee and the effects of a fit as plain types."""
    spent, method = model.privacy_, model.privacy_.parameters["method_"]
    made = model_summary(model).to_dict()
    return {
        "private": spent.private,
        "leaks": list(spent.leaks),
        "epsilon": spent.epsilon,
        "delta": spent.delta,
        "family": METHODS[method].family,
        "method": getattr(model, "method_", method),
        "n": spent.data["n_samples"],
        **{key: made[key] for key in ("coefficients", "hidden", "references", "pooled", "notes")},
    }


def _size(model: PrivateModel) -> str:
    """Return the numbers of rows and persons that are public or were released."""
    stated = model.privacy_
    population = Population.certified(stated.data, stated.parameters)
    return population.size(stated.data["n_samples"])


def _model(asked: Asked) -> PrivateModel:
    """Return the estimator for the given family and options."""
    check_choice("family", asked.family, tuple(FAMILIES))
    common = {**asked.parameters, "score_share": asked.score_share}
    if asked.quantile != "0.5" and asked.family != "quantile":
        raise value_error("quantile", "be given with --family quantile", asked.quantile)
    options.check_listed(asked.min_listed, asked.family)
    inference = asked.method in options.INFERRING if asked.intervals is None else asked.intervals
    if inference and asked.method not in options.INFERRING:
        raise value_error("inference", f"be False for method {asked.method!r}", True)
    common["inference"] = inference
    if asked.family == "linear":
        return with_method(FAMILIES["linear"](**common), asked.method)
    if asked.method != "auto":
        raise value_error("method", "be auto for a family other than linear", asked.method)
    if asked.family == "quantile":
        common["quantile"] = options.quantiles(asked.quantile)
    if asked.family == "logistic":
        common["min_listed"] = asked.min_listed
        if asked.bounds is None:
            raise value_error("bounds", "be given with --family logistic", None)
    return FAMILIES[asked.family](**common)


@contextmanager
def _charge_told(budget: BudgetAccountant | None) -> Iterator[None]:
    """Print whether the ledger was charged, if an interrupt ends the fit."""
    before = 0 if budget is None else len(budget)
    try:
        yield
    except KeyboardInterrupt:
        if budget is not None:
            line = (
                "the ledger was charged. The charge stands, because noise may have been drawn."
                if len(budget) > before
                else "nothing was charged to the ledger."
            )
            print(f"fastmix: {line}", file=sys.stderr)
        raise


def _words(asked: Asked, public: PublicBounds | None) -> list[str]:
    """Return the public names, units and notes that the files of a fit repeat."""
    if public is None:
        return list(table_fields(asked.data, asked.text))
    features = (public.target, *public.features)
    words = [getattr(each, key, "") for each in features for key in ("note", "unit")]
    return words + list(public.columns(asked.intercept))


def _leaky(asked: Asked) -> PublicBounds:
    """Take bounds from the table: the certificate of such a fit says NOT PRIVATE."""
    data, found = asked.data, inferred_numbers(asked.data, asked.text)
    wanted = [asked.target, *(asked.names or (name for name in found if name != asked.target))]
    for name in wanted:
        if name not in found:
            raise DataError(
                f"{data.name} has no column of numbers {name!r}; categories need a bounds file."
            )
    numbers = []
    for name, column in read_columns(data, wanted, {}, asked.text).numbers.items():
        values = column[np.isfinite(column)]
        low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
        if max(-low, high) > 1e100:
            raise DataError(f"{data.name}: column {name!r} must be at most 1e100 in magnitude.")
        numbers.append(Number(name, low, high if high > low else low + 1.0))
    return PublicBounds(numbers[0], tuple(numbers[1:]), "drop")


def _fit(model: PrivateModel, asked: Asked, public: PublicBounds) -> None:
    """Fit the table in memory, block by block, or on a cluster."""
    data, intercept, engine = asked.data, asked.intercept, asked.engine
    if engine == "auto" and asked.bounds is not None:
        large = (
            bool(asked.person or asked.weight)
            or (isinstance(data, Path) and data.is_dir())
            or table_bytes(data, public, intercept=intercept) > _LARGE
        )
        engine = "stream" if large else "memory"
    if engine in ("auto", "memory"):
        with progress("fitting") as bar:
            bar.say("reading")
            model.fit(*asked.records(public, asked.text))
        return
    if engine == "dask" and not isinstance(data, Path):
        raise value_error("engine", "be memory or stream for a database", engine)
    with (
        _cluster_client(asked.scheduler) if engine == "dask" else nullcontext() as client,
        progress("fitting"),
    ):
        executor = Streaming() if client is None else Cluster(client)
        memory = int(asked.memory * 2**30)
        table = asked.chunks(public, intercept=intercept, executor=executor, memory=memory)
        most = 1.0 if asked.max_weight is None else asked.max_weight
        model.fit_chunks(table, max_rows_per_group=asked.max_rows, max_weight=most)


@contextmanager
def _cluster_client(scheduler: str) -> Iterator[Any]:
    """Give a client of the Dask cluster at an address, or of a new cluster on this machine."""
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


def _print_effects(made: RegressionSummary, out: Path) -> None:
    """Print the effects that the data identify; only the largest if there are many."""
    lines = made.largest(LONGEST)
    header = ["effect of", "per unit", "across range"]
    header += ["95% interval of it"] if made.has_errors else []
    rows = []
    for line in lines:
        across = "" if line.over_range is None else number(line.over_range)
        row = [line.name, number(line.coef), across]
        if line.low is not None and line.high is not None:
            row.append(f"{number(line.width * line.low)} to {number(line.width * line.high)}")
        rows.append(row)
    if rows:
        print_table(header, rows)
    if (rest := len(made.shown) - len(lines)) > 0:
        print_text(f"and {rest:,} more; 'fastmix summary {out} --all' shows them")
    print_text(*(text for note in made.notes for text in ("", note)))
