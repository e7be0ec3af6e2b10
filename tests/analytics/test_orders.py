"""Orders that are taken by a shorter way are the plain ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.ledger.naturalorder import _natural, natural_order
from analytics.ledger.order import in_order, stable_order

EDGES = st.sampled_from([-(2**63), -1, 0, 1, 2**45, 2**62, 2**63 - 1])
KEYS = st.lists(st.one_of(st.integers(-3, 3), EDGES, st.integers(-(2**63), 2**63 - 1)), max_size=40)
NAMES = st.lists(
    st.one_of(
        st.integers(0, 120).map(str),
        st.integers(0, 120).map(lambda n: f"r{n:04d}"),
        st.integers(0, 120).map(lambda n: f"4002_{n}"),
        st.text("r0129_²٣", min_size=1, max_size=4),
    ),
    max_size=12,
)


@settings(deadline=None)
@given(KEYS)
def test_a_stable_order_leaves_equal_ones_as_they_are_whatever_the_keys(keys):
    key = np.array(keys, np.int64)
    assert stable_order(key).tolist() == sorted(range(len(keys)), key=keys.__getitem__)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(-1, 5), st.integers(-1, 2**40)), max_size=40))
def test_the_first_key_decides_first(rows):
    columns = np.array(rows, np.int64).reshape(-1, 2).T
    assert in_order(*columns).tolist() == sorted(range(len(rows)), key=rows.__getitem__)


@settings(deadline=None)
@given(NAMES)
def test_names_that_are_sorted_as_they_are_are_in_natural_order(names):
    assert sorted(names, key=natural_order(names)) == sorted(names, key=_natural)


@pytest.mark.parametrize(
    ("names", "plain"),
    [
        (["r0010", "r0009", "r0100"], True),
        (["10", "99"], True),
        (["10", "9"], False),
        (["r10", "s10"], False),
        (["4002_10", "4002_07"], False),
        (["r10", "r1x"], False),
        ([], False),
    ],
)
def test_only_names_of_one_text_and_as_many_digits_are_sorted_as_they_are(names, plain):
    assert (natural_order(names) is str) is plain
