"""Files are found where they are said to be, and a missing one is asked for by name."""

import pytest
from sklearn.utils import Bunch

from reproduction.data import SETS, load_table

ADVICE = {
    "airline": "42728",
    "beijing": "new.csv from https://www.kaggle.com/datasets/ruiqurm/lianjia",
    "black_friday": "https://www.openml.org/d/41540",
    "flights_2001": "flights-3m.parquet",
    "rossman": "train.csv and store.csv from https://www.kaggle.com/c/rossmann-store-sales",
    "year_msd": "YearPredictionMSD.txt.zip from https://archive.ics.uci.edu/dataset/203",
}


@pytest.mark.parametrize("name", SETS)
def test_a_missing_file_is_asked_for(name, tmp_path):
    for place in (None, tmp_path):
        with pytest.raises(FileNotFoundError, match="no file") as caught:
            load_table(name, place)
        assert ADVICE[name] in str(caught.value)
        assert "FASTMIX_DATA" in str(caught.value)


def test_file_folder_and_environment_are_the_same(black_friday, tmp_path, monkeypatch):
    path = tmp_path / "black_friday.csv"
    black_friday.to_csv(path, index=False)
    by_file = load_table("black_friday", path, check_rows=False)
    by_folder = load_table("black_friday", tmp_path, check_rows=False)
    monkeypatch.setenv("FASTMIX_DATA", str(tmp_path))
    by_environment = load_table("black_friday", check_rows=False)
    assert (by_file.X == by_folder.X).all()
    assert (by_file.X == by_environment.X).all()


def test_parquet_is_csv(black_friday, tmp_path):
    for kind in ("csv", "parquet"):
        (tmp_path / kind).mkdir()
    black_friday.to_csv(tmp_path / "csv" / "black_friday.csv", index=False)
    black_friday.to_parquet(tmp_path / "parquet" / "black_friday.parquet")
    one, other = (
        load_table("black_friday", tmp_path / kind, check_rows=False) for kind in ("csv", "parquet")
    )
    assert (one.X == other.X).all()
    assert (one.y == other.y).all()


def test_the_number_of_rows_is_checked(black_friday, tmp_path):
    black_friday.to_csv(tmp_path / "black_friday.csv", index=False)
    with pytest.raises(ValueError, match="has 40 rows, the published file has 166821"):
        load_table("black_friday", tmp_path)


def test_columns_and_codes_are_checked(black_friday, tmp_path):
    path = tmp_path / "black_friday.csv"
    black_friday.drop(columns="Age").to_csv(path, index=False)
    with pytest.raises(ValueError, match="has no column Age"):
        load_table("black_friday", path, check_rows=False)
    black_friday.assign(City_Category="Z").to_csv(path, index=False)
    with pytest.raises(ValueError, match="City_Category holds a value that is not in its list"):
        load_table("black_friday", path, check_rows=False)


def test_openml_is_asked_only_when_told(black_friday, year_msd, monkeypatch):
    """The tests have no network: what scikit-learn would return is put in its place."""
    asked = []

    def fetch_openml(**arguments):
        asked.append(arguments)
        if arguments.get("data_id") == 41540:
            return Bunch(frame=black_friday)
        names = year_msd.rename(columns=lambda i: f"V{i}")
        return Bunch(frame=names, data=names.iloc[:, 1:], target=names.iloc[:, 0])

    monkeypatch.setattr("reproduction.data.sources.fetch_openml", fetch_openml)
    with pytest.raises(FileNotFoundError, match="pass --download"):
        load_table("black_friday", check_rows=False)
    assert asked == []
    table = load_table("black_friday", download=True, check_rows=False)
    assert table.provenance.startswith("Black Friday (OpenML 41540)")
    songs = load_table("year_msd", download=True, check_rows=False)
    assert (songs.y == year_msd[0]).all()
    assert asked[0]["data_id"] == 41540
    assert asked[1]["name"] == "YearPredictionMSD"
