"""Every loader gives the features, targets, bounds and provenance that it documents."""

import numpy as np
import pytest

from reproduction.data import load_table

ROWS = 40


@pytest.fixture
def folder(tmp_path, black_friday, rossman, beijing, airline, flights, year_msd):
    """All files, as their publishers name and write them."""
    black_friday.to_csv(tmp_path / "black_friday.csv", index=False)
    rossman[0].to_csv(tmp_path / "train.csv", index=False)
    rossman[1].to_csv(tmp_path / "store.csv", index=False)
    beijing.to_csv(tmp_path / "new.csv", index=False, encoding="gbk")
    airline.to_csv(tmp_path / "Airlines_DepDelay_10M.csv", index=False)
    flights.to_parquet(tmp_path / "flights-3m.parquet")
    year_msd.to_csv(tmp_path / "YearPredictionMSD.txt", index=False, header=False)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "d", "rows", "target"),
    [
        ("airline", 4, ROWS, "DepDelay"),
        ("beijing", 25, (ROWS - 3) // 3, "totalPrice"),
        ("black_friday", 81, ROWS, "Purchase"),
        ("flights_2001", 4, ROWS, "delay"),
        ("rossman", 28, ROWS - 3, "Sales"),
        ("year_msd", 90, ROWS, "year"),
    ],
)
def test_shape_bounds_and_provenance(folder, name, d, rows, target):
    table = load_table(name, folder, check_rows=False)
    assert table.X.shape == (rows, d)
    assert table.y.shape == (rows,)
    assert table.X.dtype == table.y.dtype == np.float64
    assert len(table.feature_names) == len(set(table.feature_names)) == d
    assert table.target_name == target
    lower, upper = table.bounds_X
    assert lower.shape == upper.shape == (d,)
    assert (lower <= table.X).all()
    assert (upper >= table.X).all()
    assert table.bounds_y[0] <= table.y.min() <= table.y.max() <= table.bounds_y[1]
    assert "." in table.provenance or "OpenML" in table.provenance


def test_black_friday_rows_are_nine_indicators(folder, black_friday):
    table = load_table("black_friday", folder, check_rows=False)
    assert set(np.unique(table.X)) == {0.0, 1.0}
    assert (table.X.sum(axis=1) == 9.0).all()
    column = table.feature_names.index("Stay_In_Current_City_Years=4")
    expected = black_friday["Stay_In_Current_City_Years"] == "4+"
    np.testing.assert_array_equal(table.X[:, column] == 1.0, expected)
    np.testing.assert_array_equal(table.y, black_friday["Purchase"])


def test_rossman_drops_and_joins(folder, rossman):
    table = load_table("rossman", folder, check_rows=False)
    at = table.feature_names.index
    sales, stores = rossman
    kept = sales.drop(index=[0, 1, 2]).merge(stores, on="Store")
    np.testing.assert_array_equal(np.sort(table.y), np.sort(kept["Sales"]))
    np.testing.assert_array_equal(table.X[:, at("Open")], 1.0)
    np.testing.assert_array_equal(table.X[:, at("PromoInterval=none")], kept["Store"] == 1)
    distances = kept["CompetitionDistance"].fillna((1270.0 + 570.0) / 2.0)
    np.testing.assert_array_equal(table.X[:, at("CompetitionDistance")], distances)
    assert {"Store", "Customers", "Date", "Sales"}.isdisjoint(table.feature_names)
    assert (table.X[:, 13:].sum(axis=1) == 4.0).all()
    with pytest.raises(ValueError, match="must be the folder of all files"):
        load_table("rossman", folder / "train.csv")


def test_beijing_keeps_the_first_third_of_complete_rows(folder, beijing):
    table = load_table("beijing", folder, check_rows=False)
    kept = beijing.drop(index=[0, 1, 2]).iloc[: (ROWS - 3) // 3]
    at = table.feature_names.index
    column = table.X[:, at("buildingStructure=6")]
    np.testing.assert_array_equal(column == 1.0, kept["buildingStructure"] == 6)
    np.testing.assert_array_equal(table.X[:, at("constant")], 1.0)
    np.testing.assert_array_equal(table.y, kept["totalPrice"])
    assert (table.X[:, 10:-1].sum(axis=1) == 3.0).all()


def test_airline_reads_codes_and_scales_delays(folder, airline):
    table = load_table("airline", folder, check_rows=False)
    days = airline["DayOfWeek"].str.removeprefix("c-").astype(float)
    np.testing.assert_array_equal(table.X[:, 1], days)
    np.testing.assert_array_equal(table.X[:, 2], 8.0)
    np.testing.assert_array_equal(table.X[:, 0], airline["Distance"])
    share = 6.0 * airline["DepDelay"] / airline["DepDelay"].abs().max()
    np.testing.assert_allclose(table.y, share.clip(-1.0, 1.0))
    assert table.y.max() == 1.0
    plain = folder / "plain.csv"
    airline.assign(DayOfWeek=days.astype(int), Month=3).to_csv(plain, index=False)
    np.testing.assert_array_equal(load_table("airline", plain, check_rows=False).X[:, 1], days)


def test_flights_of_2001_have_the_features_of_airline(folder):
    table = load_table("flights_2001", folder, check_rows=False)
    assert table.feature_names == load_table("airline", folder, check_rows=False).feature_names
    # 1 January 2001 was a Monday; five past midnight is 0005.
    np.testing.assert_array_equal(table.X[0, 1:], [1.0, 1.0, 5.0])


def test_year_msd_keeps_the_order_of_columns(folder, year_msd):
    table = load_table("year_msd", folder, check_rows=False)
    np.testing.assert_array_equal(table.y, year_msd[0])
    np.testing.assert_allclose(table.X, year_msd.to_numpy()[:, 1:])
