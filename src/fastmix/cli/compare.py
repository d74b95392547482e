"""``fastmix compare``: several feature sets of a table under one budget, the best one fitted."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from fastmix._validation import check_choice, value_error
from fastmix.certificate.explain import headline
from fastmix.cli import _options as options
from fastmix.cli._asked import FitOptions, check_target
from fastmix.cli._console import print_json, print_table, print_text
from fastmix.cli._papers import Papers
from fastmix.estimators import PrivateLinearRegression, PrivateLogisticRegression, compare
from fastmix.schema import PublicBounds
from fastmix.schema.bounds import check_persons
from fastmix.show.progress import progress

_MODEL = options.panel("Model")

EXAMPLES = (
    "fastmix compare people.csv --target income --bounds bounds.toml --epsilon 1 --delta 1e-6 "
    "--set age,city --set age",
    "fastmix compare smokers.csv --target smoker --bounds smokers.toml --delta 1e-6 "
    "--family logistic --set age,city --set age --out smoking",
)


@dataclass(frozen=True, kw_only=True)
class AskedComparison(options.TableOptions, FitOptions):
    """The options of ``fastmix compare``."""

    bounds: Annotated[Path, _MODEL("Bounds file; see 'fastmix bounds'.")]
    sets: Annotated[
        list[str], _MODEL("Features of a set, separated by commas; once per set.", "--set")
    ]
    family: Annotated[str, _MODEL("linear, or logistic (for labels).")] = "linear"
    intervals: Annotated[bool, _MODEL("Standard errors of the best model.")] = True


@options.grouped(AskedComparison)
def command(asked: AskedComparison) -> None:
    """Rank feature sets privately, and fit the best with the rest of the budget.

    The sets are declared together and charged as one; 30% of the budget pays for the ranking.
    """
    options.check_counting(asked.person, asked.max_rows, asked.weight, asked.max_weight)
    public = asked.public(asked.bounds, asked.target, asked.person, asked.weight)
    check_choice("family", asked.family, ("linear", "logistic"))
    options.check_listed(asked.min_listed, asked.family)
    check_target(public, asked.family)
    check_persons(public, bool(asked.person), not asked.private_rows)
    named = [options.names_in(each) for each in asked.sets]
    chosen = {",".join(names): public.select(names) for names in named}
    if len(chosen) < len(named):
        raise value_error("set", "be another one each time", asked.sets)
    places = {name: k for k, name in enumerate(public.columns(asked.intercept))}
    candidates = {
        name: [places[column] for column in each.columns(asked.intercept)]
        for name, each in chosen.items()
    }
    model = _model(asked, public)
    papers = Papers(asked.papers, asked.sign)
    with papers.folder(asked, places) as publish:
        with progress("comparing") as bar:
            bar.say("reading")
            if asked.person or asked.weight:
                X, y, whose = _with_persons(asked, public)
            else:
                (X, y), whose = asked.records(public, asked.text), {}
            with asked.noted():
                found = compare(candidates, X, y, model=model, **whose)
        best = found.model
        best.schema_ = chosen[found.best]
        papers.publish(best, publish)
    if asked.json:
        ranking = [{"features": name, "excess_mse": value} for name, value in found.excess.items()]
        spent = best.privacy_
        told = {"epsilon": spent.epsilon, "delta": spent.delta, "private": spent.private}
        print_json({**told, "best": found.best, "ranking": ranking, "std": found.std})
        return
    print_table(["features", "columns", "excess MSE"], found.rows())
    print_text("", f"Standard error of a difference: {found.std:.2g}.", "")
    print_text(headline(best.privacy_))
    print_text(f"Wrote model.json, certificate.json and report.html of the best to {asked.out}.")


def _model(asked: AskedComparison, public: PublicBounds) -> Any:
    """Return the estimator of all columns."""
    bounds = {"bounds_X": public.feature_bounds(asked.intercept), "data_norm": public.data_norm}
    common: Any = {**asked.parameters, **bounds, "inference": asked.intervals}
    if asked.family == "logistic":
        listed = asked.min_listed
        return PrivateLogisticRegression(classes=public.ends, min_listed=listed, **common)
    return PrivateLinearRegression(bounds_y=public.ends, **common)


def _with_persons(asked: AskedComparison, public: PublicBounds) -> tuple[Any, Any, dict[str, Any]]:
    """Return the encoded table in memory, with ids, weights and their limits for `compare`."""
    chunks = asked.chunks(public, intercept=asked.intercept).chunks
    records = [part for chunk in chunks for part in chunk.read()]
    X, y = (np.concatenate(parts) for parts in zip(*records, strict=True))
    whose: dict[str, Any] = {}
    if asked.person:
        ids = [each for chunk in chunks for each in chunk.read_ids()]
        whose |= {"groups": np.concatenate(ids), "max_rows_per_group": asked.max_rows}
    if asked.weight:
        weights = [each for chunk in chunks for each in chunk.read_weights()]
        whose |= {"sample_weight": np.concatenate(weights), "max_weight": asked.max_weight}
    return X, asked.targets(public, y), whose
