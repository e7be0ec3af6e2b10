"""A table as CSV and Parquet, made only when it is asked for."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import streamlit as st

from dashboard.words import Words

Rows = Sequence[Mapping[str, Any]]


def downloads(name: str, rows: Rows, words: Words) -> None:
    """Two quiet buttons under a table."""
    label = words("app.download")
    with st.container(horizontal=True, horizontal_alignment="right"):
        st.download_button(
            f"{label} CSV",
            lambda: as_csv(rows),
            f"unstrand-{name}.csv",
            "text/csv",
            key=f"csv_{name}",
            type="tertiary",
            on_click="ignore",
        )
        st.download_button(
            f"{label} Parquet",
            lambda: as_parquet(rows),
            f"unstrand-{name}.parquet",
            "application/vnd.apache.parquet",
            key=f"parquet_{name}",
            type="tertiary",
            on_click="ignore",
        )


def as_csv(rows: Rows) -> bytes:
    """UTF-8 CSV with a header; money as exact decimal text."""
    sink = io.BytesIO()
    pyarrow.csv.write_csv(as_table(rows), sink)
    return sink.getvalue()


def as_parquet(rows: Rows) -> bytes:
    """Parquet; money as DECIMAL."""
    sink = io.BytesIO()
    pyarrow.parquet.write_table(as_table(rows), sink)
    return sink.getvalue()


def as_table(rows: Rows) -> pa.Table:
    """The rows as a table, columns in the order of the first row."""
    names = list(rows[0]) if rows else []
    return pa.table({name: _column([row[name] for row in rows]) for name in names})


def _column(values: list[Any]) -> pa.Array:
    if any(isinstance(value, Decimal) for value in values):
        return pa.array(values, pa.decimal128(38, 9))
    return pa.array(values)
