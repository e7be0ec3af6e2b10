"""Names as places in a sorted list, so that columns of them are integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from analytics.ledger.kernel.state import Array


def places(column: Any) -> tuple[list[str], Array]:
    """The column's names in order, each once, and the place of every row's; null = -1."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    coded = column.dictionary_encode()
    words: list[str] = coded.dictionary.to_pylist()
    order = sorted(range(len(words)), key=words.__getitem__)
    rank = np.full(len(words) + 1, -1, np.int64)
    rank[order] = np.arange(len(words))
    index = coded.indices.fill_null(len(words)).to_numpy(zero_copy_only=False)
    return [words[place] for place in order], rank[index]
