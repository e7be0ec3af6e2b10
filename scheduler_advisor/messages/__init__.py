"""The words of reports, one TOML file per language; a test holds the files to the same keys."""

from __future__ import annotations

import string
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from scheduler_advisor.errors import ReportError
from scheduler_advisor.messages.filling import Filling

LANGUAGES = ("en", "ko")
_FOLDER = Path(__file__).parent
_FILLING = Filling()


@cache
def catalogue(language: str) -> dict[str, str]:
    """Every sentence of a language by its dotted key."""
    if language not in LANGUAGES:
        raise ReportError(f"no language {language!r}: one of {', '.join(LANGUAGES)}")
    raw = tomllib.loads((_FOLDER / f"{language}.toml").read_text(encoding="utf-8"))
    return dict(_flat(raw, ""))


def fields_of(sentence: str) -> set[str]:
    """The names that a sentence is filled with."""
    return {name for _, name, _, _ in string.Formatter().parse(sentence) if name}


class Words:
    """The sentences of one language."""

    def __init__(self, language: str) -> None:
        self.language = language
        self._texts = catalogue(language)

    def has(self, key: str) -> bool:
        """Whether there is a sentence for ``key``."""
        return key in self._texts

    def say(self, key: str, params: Mapping[str, Any] | None = None, /, **more: Any) -> str:
        """The sentence for ``key``, filled; ReportError for a key or a name that is missing."""
        try:
            return _FILLING.vformat(self._texts[key], (), {**(params or {}), **more})
        except KeyError as error:
            raise ReportError(
                f"messages/{self.language}.toml: {key}: {error} is missing"
            ) from error

    def of_kind(
        self, kind: str, variant: str, part: str, params: Mapping[str, Any] | None = None
    ) -> str:
        """A kind's sentence, in the variant's words where it has its own."""
        own = f"kind.{kind}.{variant}.{part}"
        key = own if variant and self.has(own) else f"kind.{kind}.{part}"
        return self.say(key, params)


def _flat(table: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    for name, value in table.items():
        if isinstance(value, str):
            yield prefix + name, value
        else:
            yield from _flat(value, f"{prefix}{name}.")
