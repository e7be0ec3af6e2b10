"""A downloaded table is the table: exact money, same rows."""

from __future__ import annotations

import io
from decimal import Decimal

import pyarrow.csv
import pyarrow.parquet

from analytics.reports import cost_report
from analytics.window import Window
from dashboard.parts.downloads import as_csv, as_parquet


def test_parquet_keeps_money_exact(site_store, site):
    report = cost_report(site_store, Window(site.SINCE, site.UNTIL), ("team", "gpu_model"))
    table = pyarrow.parquet.read_table(io.BytesIO(as_parquet(report.rows)))
    assert sum(table["cost"].to_pylist(), Decimal()) == report.total["cost"]
    assert table.column_names == list(report.rows[0])


def test_csv_has_a_line_per_row(site_store, site):
    report = cost_report(site_store, Window(site.SINCE, site.UNTIL), ("day",))
    table = pyarrow.csv.read_csv(io.BytesIO(as_csv(report.rows)))
    assert table.num_rows == 14


def test_a_table_without_rows_is_a_file_all_the_same():
    assert as_csv([]) is not None
    assert pyarrow.parquet.read_table(io.BytesIO(as_parquet([]))).num_rows == 0
