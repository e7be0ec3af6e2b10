"""State by its address: what a kernel reads through a reference, and who sees what it writes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from scheduler_advisor.engine.live.compiled import kernel
from scheduler_advisor.engine.live.refs import referred


class Inner(NamedTuple):
    row: Any
    table: Any


class Outer(NamedTuple):
    before: int
    inner: Inner
    weights: Any
    after: int


@kernel
def below(one: Outer, inner: Inner, at: int) -> float:
    inner.row[at] += one.after
    inner.table[at, 1] = one.before
    return one.weights[at] + len(inner.row)


@kernel
def above(one: Outer) -> float:
    there = referred(one)
    total = 0.0
    for at in range(len(there.inner.row)):
        total += below(there, there.inner, at)
        total += there.inner.table[at, 1]
    return total + there.inner.table.shape[1] * 1000 + there.after


def test_a_reference_reads_every_field_and_writes_into_the_very_arrays() -> None:
    row = np.arange(3)
    table = np.zeros((3, 2), np.int64)
    one = Outer(7, Inner(row, table), np.array([0.5, 0.25, 0.125]), 40)
    # weights, three lengths of 3, 7 read back three times, two columns, 40
    assert above(one) == 0.875 + 9 + 21 + 2000 + 40
    assert row.tolist() == [40, 41, 42]
    assert table.tolist() == [[0, 7], [0, 7], [0, 7]]


def test_a_tuple_of_numbers_alone_is_referred_to_as_well() -> None:
    class Numbers(NamedTuple):
        one: int
        other: int

    @kernel
    def less(first: Numbers) -> int:
        there = referred(first)
        return there.other - there.one

    assert less(Numbers(2, 9)) == 7
