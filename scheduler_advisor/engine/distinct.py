"""Numbering the distinct rows of a table of integers, in order of first appearance."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.engine.jit import kernel

Ints = NDArray[np.int64]


@kernel
def _number(columns: Any, table: Any, of_row: Any, firsts: Any) -> int:
    mask = len(table) - 1
    found = 0
    for row in range(columns.shape[1]):
        mixed = 0
        for column in range(columns.shape[0]):
            mixed = ((mixed ^ (columns[column, row] & 0xFFFFFFFF)) * 1000003 + 7) & 0xFFFFFFFF
        slot = (mixed ^ (mixed >> 15)) & mask
        while True:
            one = table[slot]
            if one < 0:
                table[slot] = found
                firsts[found] = row
                of_row[row] = found
                found += 1
                break
            same = True
            for column in range(columns.shape[0]):
                if columns[column, firsts[one]] != columns[column, row]:
                    same = False
                    break
            if same:
                of_row[row] = one
                break
            slot = (slot + 1) & mask
    return found


def distinct_rows(columns: list[Ints]) -> tuple[Ints, Ints]:
    """Number of each row's value, and for each number the first row that has it."""
    size = len(columns[0])
    changing = [column for column in columns if size and (column != column[0]).any()]
    if not changing:
        return np.zeros(size, np.int64), np.zeros(min(size, 1), np.int64)
    table = np.full(1 << max(4, (2 * size).bit_length()), -1, np.int64)
    of_row, firsts = np.zeros(size, np.int64), np.zeros(size, np.int64)
    found = _number(np.stack(changing), table, of_row, firsts)
    return of_row, firsts[:found].copy()
