"""Small files in the formats of the published ones, made up."""

import numpy as np
import pandas as pd
import pytest

ROWS = 40


@pytest.fixture
def rng():
    return np.random.Generator(np.random.PCG64(0))


@pytest.fixture
def black_friday(rng):
    def pick(*values):
        return rng.choice(values, ROWS)

    return pd.DataFrame(
        {
            "Gender": pick("F", "M"),
            "Age": pick("0-17", "26-35", "55+"),
            "Occupation": pick(0, 7, 20),
            "City_Category": pick("A", "B", "C"),
            "Stay_In_Current_City_Years": pick("0", "1", "4+"),
            "Marital_Status": pick(0, 1),
            "Product_Category_1": pick(1, 2, 15),
            "Product_Category_2": pick(2.0, 16.0),
            "Product_Category_3": pick(3.0, 18.0),
            "Purchase": rng.integers(12, 23_961, ROWS),
        }
    )


@pytest.fixture
def rossman(rng):
    days = pd.date_range("2013-01-01", periods=ROWS, freq="17D")
    sales = pd.DataFrame(
        {
            "Store": rng.integers(1, 4, ROWS),
            "DayOfWeek": days.day_of_week + 1,
            "Date": days.strftime("%Y-%m-%d"),
            "Sales": 5000 + rng.integers(-500, 500, ROWS),
            "Customers": rng.integers(100, 900, ROWS),
            "Open": 1,
            "Promo": rng.integers(0, 2, ROWS),
            "StateHoliday": rng.choice(["0", "a", "b", "c"], ROWS),
            "SchoolHoliday": rng.integers(0, 2, ROWS),
        }
    )
    sales.loc[0, "Open"] = 0  # closed
    sales.loc[1, "Sales"] = 0  # nothing sold
    sales.loc[2, "Sales"] = 40_000  # an outlier
    stores = pd.DataFrame(
        {
            "Store": [1, 2, 3],
            "StoreType": ["a", "b", "d"],
            "Assortment": ["a", "b", "c"],
            "CompetitionDistance": [1270.0, 570.0, None],
            "CompetitionOpenSinceMonth": [9.0, None, 1.0],
            "CompetitionOpenSinceYear": [2008.0, None, 2001.0],
            "Promo2": [0, 1, 1],
            "Promo2SinceWeek": [None, 13.0, 1.0],
            "Promo2SinceYear": [None, 2010.0, 2012.0],
            "PromoInterval": [None, "Jan,Apr,Jul,Oct", "Mar,Jun,Sept,Dec"],
        }
    )
    return sales, stores


@pytest.fixture
def beijing(rng):
    frame = pd.DataFrame(
        {
            "url": "https://example.org",
            "id": np.arange(ROWS),
            "Lng": 116.4,
            "Lat": 39.9,
            "Cid": 1,
            "tradeTime": "2016-08-09",
            "DOM": 1464.0,
            "followers": rng.integers(0, 100, ROWS),
            "totalPrice": 100.0 + rng.integers(0, 900, ROWS),
            "price": 31680,
            "square": 131.0,
            "livingRoom": rng.integers(1, 4, ROWS).astype(str),
            "drawingRoom": rng.integers(1, 3, ROWS).astype(str),
            "kitchen": 1,
            "bathRoom": "1",
            "floor": "高 26",
            "buildingType": rng.integers(1, 5, ROWS).astype(float),
            "constructionTime": "2005",
            "renovationCondition": rng.integers(1, 5, ROWS),
            "buildingStructure": rng.integers(1, 7, ROWS),
            "ladderRatio": 0.217,
            "elevator": 1.0,
            "fiveYearsProperty": 0.0,
            "subway": 1.0,
            "district": 7,
            "communityAverage": 56_021.0,
        }
    )
    frame.loc[0, "DOM"] = None  # as in half of the published file
    frame.loc[1, "buildingType"] = 0.048
    frame.loc[2, "ladderRatio"] = 10_009_400.0  # a slip of the pen
    return frame


@pytest.fixture
def airline(rng):
    return pd.DataFrame(
        {
            "DepDelay": rng.integers(-10, 90, ROWS),
            "Month": "c-8",
            "DayofMonth": [f"c-{day}" for day in rng.integers(1, 32, ROWS)],
            "DayOfWeek": [f"c-{day}" for day in rng.integers(1, 8, ROWS)],
            "CRSDepTime": rng.integers(0, 2400, ROWS),
            "CRSArrTime": rng.integers(0, 2400, ROWS),
            "UniqueCarrier": "AA",
            "Origin": "ATL",
            "Dest": "SFO",
            "Distance": rng.integers(50, 4900, ROWS),
        }
    )


@pytest.fixture
def flights(rng):
    return pd.DataFrame(
        {
            "date": pd.date_range("2001-01-01 00:05", periods=ROWS, freq="31h"),
            "delay": rng.integers(-10, 90, ROWS),
            "distance": rng.integers(50, 4900, ROWS),
            "origin": "ATL",
            "destination": "SFO",
        }
    )


@pytest.fixture
def year_msd(rng):
    frame = pd.DataFrame(rng.normal(0.0, 50.0, (ROWS, 91)))
    frame[0] = rng.integers(1922, 2012, ROWS)
    return frame
