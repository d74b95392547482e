"""How many listed labels a table lacks: the statistic, its sensitivity, its law."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import laplace

from fastmix.data import ArrayRows, LabelMap, RowMap
from fastmix.data.persons import Persons
from fastmix.data.weights import on_grid
from fastmix.kernels.mapped import additions
from fastmix.releases import UNLISTED, make_noise, sensitivity
from fastmix.releases.release import Public

LABELS = LabelMap(np.array([0.0, 1.0, 2.0]), np.array([1.0, 0.25, 1e-9]), 0)


def rows_of(labels, weights=None):
    persons = None if weights is None else Persons(len(labels), np.array(weights), len(labels))
    X = np.ones((len(labels), 2)) / 2.0
    return ArrayRows(X, RowMap(1.0), np.array(labels), LABELS, persons=persons)


def lacking(*given, share):
    return UNLISTED.statistic(rows_of(*given), share=share)


def limit_of(n, share):
    """Return the sensitivity of n records, with the room for rounding."""
    public = Public(n, 2, 1.0, 0.0, most=n, additions=additions(n, 3))
    return UNLISTED.sensitivity(public, share=share)


def test_all_listed_labels_count_alike_whatever_their_class_weighs():
    assert lacking([0.0, 1.0, 2.0, -1.0], share=0.75) == 0.0
    assert lacking([0.0, 1.0, 7.0, -1.0], share=0.75) == 1.0
    assert lacking([0.0, 1.0, 7.0, -1.0], [1.0, 0.5, 0.5, 0.0], share=0.5) == -0.5


label = st.sampled_from([0.0, 1.0, 2.0, -1.0, 9.0])
record = st.tuples(label, st.floats(0.0, 1.0))


@settings(max_examples=300, deadline=None)
@given(st.lists(record, min_size=1, max_size=6), st.floats(1e-6, 1.0 - 1e-6))
def test_a_record_changes_the_statistic_by_at_most_the_sensitivity(records, share):
    labels, weights = map(np.array, zip(*records, strict=True))
    limit = limit_of(len(records) + 2, share)
    weights = on_grid(weights)
    empty, none = np.append(-1.0, labels[1:]), np.append(0.0, weights[1:])
    # The number of records is public, or released, so it is the same for both.
    assert abs(lacking(labels, share=share) - lacking(empty, share=share)) <= limit
    whole = lacking(labels, weights, share=share)
    assert abs(whole - lacking(empty, none, share=share)) <= limit
    # All rows of one person: their weights add up to at most 1, whatever labels they have.
    own = on_grid(weights / len(weights), len(weights))
    others = [0.0, -1.0], [1.0, 1.0]
    joined = [np.append(a, b) for a, b in zip((labels, own), others, strict=True)]
    assert abs(lacking(*joined, share=share) - lacking(*others, share=share)) <= limit


def test_the_sensitivity_is_attained():
    labels = [0.0, 1.0, -1.0]
    change = lacking([-1.0, *labels], share=0.3) - lacking([2.0, *labels], share=0.3)
    assert change == pytest.approx(1.0)
    assert 1.0 == sensitivity.unlisted_sensitivity() < limit_of(4, 0.3) < 1.0 + 1e-9


@pytest.mark.parametrize("n", [2**33, 2**33 - 1, 2**32 + 12345])
@pytest.mark.parametrize("share", [1e-9, 0.1, 1.0 / 3.0, 0.7, 1.0 - 2.0**-53])
def test_rounding_is_within_the_sensitivity(n, share):
    rng = np.random.default_rng(n)
    for listed in (0, 1, n // 3, n - 1, *rng.integers(0, n, 200).tolist()):
        whole = share * float(n)
        change = abs((whole - float(listed)) - (whole - float(listed + 1)))
        assert change <= limit_of(n, share)


def test_the_release_has_its_event_and_its_law():
    rows, noise = rows_of([0.0] * 10 + [-1.0] * 90), make_noise(0, warn=False)
    found = np.array([noise.release(UNLISTED, rows, share=0.5, sigma=4.0) for _ in range(4000)])
    assert set(noise.drawn) == {UNLISTED.event(4.0)}
    assert UNLISTED.event(4.0).pure_epsilon == pytest.approx(0.25)
    assert np.median(found) == pytest.approx(40.0, abs=0.5)
    assert np.abs(found - 40.0).mean() == pytest.approx(4.0, rel=0.1)
    own = {"share": 0.5, "sigma": 4.0}
    law = laplace(40.0, 4.0 * limit_of(100, 0.5))
    for value in (43.0, 12.0):
        assert UNLISTED.density(value, rows, Public.of(rows), own) == pytest.approx(
            law.logpdf(value)
        )
    with pytest.raises(ValueError, match="share must"):
        noise.release(UNLISTED, rows, share=1.5, sigma=4.0)
