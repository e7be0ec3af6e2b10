"""Texts of the pages, one TOML file per language."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

LANGUAGES = {"en": "English", "ko": "한국어"}
FOLDER = Path(__file__).parent


class Words:
    """The texts of one language by dotted name; an unknown name is a fault of ours and raises."""

    def __init__(self, language: str) -> None:
        self.language = language
        self._texts = texts(language)

    def __call__(self, name: str, /, **values: object) -> str:
        """The text ``name`` with its ``{fields}`` filled in."""
        return self._texts[name].format(**values)

    @property
    def span_units(self) -> tuple[str, str, str]:
        """What stands after a number of days, hours and minutes."""
        return self("span.days"), self("span.hours"), self("span.minutes")


@cache
def texts(language: str) -> Mapping[str, str]:
    """Every text of ``language`` by dotted name."""
    content = tomllib.loads((FOLDER / f"{language}.toml").read_text("utf-8"))
    return dict(_flat(content, ""))


def _flat(table: Mapping[str, Any], prefix: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for key, value in table.items():
        if isinstance(value, Mapping):
            found += _flat(value, f"{prefix}{key}.")
        else:
            found.append((f"{prefix}{key}", str(value)))
    return found
