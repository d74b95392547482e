"""What the numbers of a step depend on: small seeded fits, or for times the source itself.

A comment or a new name leaves the fits as they are; a constant, a share of the budget or an order
of releases changes them. Fits are made of generated rows in a second or two.
"""

from __future__ import annotations

import ast
import hashlib
import re
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import fastmix
from benchmarks.budgets import Planned

ROOT = Path(__file__).parents[1]
#: Other kernels add in another order, and a released sum may fall to the next point of its grid.
TOLERANCE = 1e-6

CITIES = ["Ulm", "Bonn", "Kiel", "Jena", "Gera"]
BOUNDS = {"bounds_X": (-1.0, 1.0), "bounds_y": (-4.0, 4.0)}
FEATURES = {"age": (0, 100), "city": CITIES, "hours": (0, 60), "sex": ["f", "m"]}


@cache
def rows(n: int = 5000, d: int = 5) -> tuple[Any, Any]:
    """Return features, the last two of which are nearly the same, and targets with long tails."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1.0, 1.0, (n, d))
    X[:, -1] = 0.9 * X[:, -2] + 0.1 * X[:, -1]
    return X, X @ np.linspace(1.0, -0.5, d) + 0.1 * rng.standard_t(3, n)


@cache
def table(n: int = 6000) -> pd.DataFrame:
    """Return people with a rare city, one that nobody lives in, and pay that depends on it."""
    rng = np.random.default_rng(8)
    shares = [0.55, 0.3, 0.13, 0.02]
    frame = pd.DataFrame({"city": rng.choice(CITIES[:4], n, p=shares)})
    frame["sex"] = rng.choice(["f", "m"], n)
    frame["age"], frame["hours"] = rng.uniform(0, 100, n), rng.normal(35, 8, n)
    frame["pay"] = 3.0 + 0.02 * frame["age"] + (frame["city"] == "Bonn") + rng.normal(0, 0.5, n)
    frame["rich"] = np.where(frame["pay"] > 4.3, "yes", "no")
    return frame


def of_numbers(kind: Any, epsilon: float, n: int = 5000, d: int = 5, **given: Any) -> Any:
    """Fit the rows of numbers."""
    return kind(epsilon=epsilon, random_state=11, **{**BOUNDS, **given}).fit(*rows(n, d))


def of_labels(epsilon: float, edges: tuple[float, ...] = (0.1,)) -> Any:
    """Fit which of some intervals the target is in."""
    X, y = rows()
    given = {"bounds_X": (-1.0, 1.0), "classes": list(range(len(edges) + 1))}
    model = fastmix.PrivateLogisticRegression(epsilon=epsilon, random_state=11, **given)
    return model.fit(X, np.digitize(y, edges))


def of_table(kind: Any, epsilon: float, target: str, ends: Any, **given: Any) -> Any:
    """Fit the table with categories."""
    bounds = {"target": {target: ends}, "features": FEATURES}
    frame = table()[[target, *FEATURES]]
    return kind(epsilon=epsilon, bounds=bounds, random_state=11, **given).fit(frame)


def of_persons(epsilon: float) -> Any:
    """Fit persons with one to seven rows, all of which count: a secret key chooses among more."""
    X, y = rows(8000)
    ids = np.repeat(np.arange(2000), np.resize([1, 7, 3, 5], 2000))
    model = fastmix.PrivateLinearRegression(epsilon=epsilon, random_state=11, **BOUNDS)
    return model.fit(X, y, groups=ids, max_rows_per_group=7)


def scored_persons(epsilon: float) -> Any:
    """Fit labels of persons; a fit with scores has them in its account, too."""
    X, y = rows(8000)
    ids = np.repeat(np.arange(2000), np.resize([1, 7, 3, 5], 2000))
    model = fastmix.PrivateLogisticRegression(
        epsilon=epsilon, bounds_X=(-1.0, 1.0), classes=[0, 1], score_share=0.1, random_state=11
    )
    return model.fit(X, np.digitize(y, [0.1]), groups=ids, max_rows_per_group=7)


LINEAR, LOGISTIC = fastmix.PrivateLinearRegression, fastmix.PrivateLogisticRegression
PAPER = {"variant": "paper"}
#: Fits by name, each at some epsilons.
FITS: dict[str, list[Callable[[], Any]]] = {
    "numbers": [partial(of_numbers, LINEAR, each) for each in (0.3, 1.0, 3.0)],
    "numbers, few rows": [partial(of_numbers, LINEAR, 1.0, 600, 20)],
    "numbers, no intervals": [partial(of_numbers, LINEAR, 1.0, inference=False)],
    "table": [partial(of_table, LINEAR, each, "pay", (0, 10)) for each in (1.0, 3.0)],
    "table, no intervals": [partial(of_table, LINEAR, 1.0, "pay", (0, 10), inference=False)],
    "table, score": [partial(of_table, LINEAR, 1.0, "pay", (0, 10), score_share=0.05)],
    "labels": [partial(of_labels, each) for each in (1.0, 3.0)],
    "labels, three": [partial(of_labels, 3.0, (-0.3, 0.4))],
    "labels of a table": [
        partial(of_table, LOGISTIC, each, "rich", ["no", "yes"]) for each in (1.0, 3.0)
    ],
    "persons": [partial(of_persons, each) for each in (1.0, 3.0)],
    "labels of persons": [partial(scored_persons, 3.0)],
    "quantile": [
        partial(of_numbers, fastmix.PrivateQuantileRegressor, 2.0, quantile=0.9, inference=True)
    ],
    "huber": [partial(of_numbers, fastmix.PrivateHuberRegressor, 1.0)],
    "IHM": [partial(of_numbers, fastmix.IHM, 1.0)],
    "IHM, paper": [partial(of_numbers, fastmix.IHM, 1.0, **PAPER)],
    "FastIHM": [partial(of_numbers, fastmix.FastIHM, 1.0)],
    "FastIHM, paper": [partial(of_numbers, fastmix.FastIHM, 1.0, **PAPER)],
    "AdaSSP": [partial(of_numbers, fastmix.AdaSSP, 1.0)],
    "AdaSSP, paper": [partial(of_numbers, fastmix.AdaSSP, 1.0, **PAPER)],
    "budget": [partial(of_numbers, LINEAR, 0.3, delta=1e-8, accountant=Planned(1.0, 1e-6))],
    "DPGradientDescent": [partial(of_numbers, fastmix.DPGradientDescent, 1.0)],
    "ObjectivePerturbation": [partial(of_numbers, fastmix.ObjectivePerturbation, 1.0)],
}


def numbers_of(model: Any) -> list[float | None]:
    """Return coefficients, standard errors, scores and noise of a fit, 9 digits each."""
    parts = [model.coef_, model.intercept_, getattr(model, "coef_std_", ())]
    parts += [getattr(model, "residual_std_", ())]
    if getattr(model, "scores_", None) is not None:
        parts += [[model.scores_[name] for name in model.scores_.scores]]
    for event in model.privacy_.spent.events:
        parts += [[v for v in event.to_dict().values() if isinstance(v, (int, float))]]
    values = np.concatenate([np.ravel(np.asarray(part, float)) for part in parts])
    return [float(f"{value:.9g}") if np.isfinite(value) else None for value in values]


@cache
def observed(name: str) -> list[float | None]:
    """Return the numbers of the fits of this name with today's code."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [value for fit in FITS[name] for value in numbers_of(fit())]


def same(stored: Any, found: Any) -> bool:
    """Return whether the numbers of fits agree, but for the order of additions."""
    if len(stored) != len(found) or any(
        (a is None) != (b is None) for a, b in zip(stored, found, strict=True)
    ):
        return False
    a, b = (np.array([value for value in each if value is not None]) for each in (stored, found))
    return bool(np.allclose(a, b, rtol=TOLERANCE, atol=1e-8))


@cache
def source(paths: tuple[str, ...]) -> str:
    """Return a digest of source files without comments, docstrings and layout."""
    digest = hashlib.sha256()
    for path in sorted(file for each in paths for file in files(each)):
        text = path.read_text(encoding="utf-8")
        plain = python(text) if path.suffix == ".py" else compiled(text)
        digest.update(f"{path.name}\n{plain}\n".encode())
    return digest.hexdigest()[:16]


def files(path: str) -> list[Path]:
    """Return the sources in a folder, or the one file."""
    at = ROOT / path
    found = [at] if at.is_file() else at.rglob("*")
    return [file for file in found if file.suffix in (".py", ".cpp", ".hpp", ".inc")]


@cache
def python(text: str) -> str:
    """Return Python code as its syntax tree without docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(
            node, clean=False
        ):
            node.body = node.body[1:]
    return ast.dump(tree)


def compiled(text: str) -> str:
    """Return C++ code without comments, with single spaces."""
    return " ".join(re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL).split())
