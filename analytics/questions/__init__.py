"""One question per file, asked in SQL of a numbered file of ``analytics/sql``."""

from __future__ import annotations

from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "sql"


@cache
def statement(name: str) -> str:
    """The text of ``analytics/sql/<name>.sql``."""
    return (FOLDER / f"{name}.sql").read_text("utf-8")
