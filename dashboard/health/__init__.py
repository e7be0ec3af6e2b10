"""The pieces of the Data health page."""

from dashboard.health.coverage import coverage_map
from dashboard.health.headline import answer_text, headline_tiles
from dashboard.health.tables import (
    conflict_table,
    gap_table,
    mapping_table,
    price_table,
    source_table,
)

__all__ = [
    "answer_text",
    "conflict_table",
    "coverage_map",
    "gap_table",
    "headline_tiles",
    "mapping_table",
    "price_table",
    "source_table",
]
