"""What was refused, in the reader's language.

Below the pages a refusal is an English sentence: it goes to logs, to the API, through processes and
into the journal of runs. Here it is known again by its sentence under ``[refused]`` and said in the
language of the page. A test holds those sentences to the ones that are raised.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from scheduler_advisor.messages import Words, catalogue

_FIELD = re.compile(r"\{(\w+)\}")
_OF_PARTS = ("because", "what")  # fields that are sentences' parts themselves
_Patterns = tuple[tuple[re.Pattern[str], str], ...]


def said(refusal: str, words: Words) -> str:
    """``refusal`` in the language of ``words``; as it was raised where it is not known."""
    return _said(refusal, "refused.", words)


def said_in(params: Mapping[str, Any], words: Words) -> dict[str, Any]:
    """``params`` of a sentence, an ``error`` among them said in its language."""
    return {
        name: said(value, words) if name == "error" and isinstance(value, str) else value
        for name, value in params.items()
    }


def _said(text: str, table: str, words: Words) -> str:
    for pattern, key in _patterns(table):
        if found := pattern.fullmatch(text):
            fields = found.groupdict()
            for name in fields.keys() & set(_OF_PARTS):
                fields[name] = _parts(fields[name], words)
            return words.say(key, fields)
    return text


def _parts(text: str, words: Words) -> str:
    """One part, or several in a row."""
    whole = _said(text, "refused_part.", words)
    if whole != text:
        return whole
    return ", ".join(_said(part, "refused_part.", words) for part in text.split(", "))


@cache
def _patterns(table: str) -> _Patterns:
    """The English sentences, those with the most words of their own first."""
    own = {key: text for key, text in catalogue("en").items() if key.startswith(table)}
    ordered = sorted(own, key=lambda key: -len(_FIELD.sub("", own[key])))
    return tuple((_pattern(own[key]), key) for key in ordered)


def _pattern(sentence: str) -> re.Pattern[str]:
    pieces, text = _FIELD.split(sentence), ""
    for at, piece in enumerate(pieces):
        if at % 2 == 0:
            text += re.escape(piece)
        else:
            text += f"(?P={piece})" if f"(?P<{piece}>" in text else f"(?P<{piece}>.*)"
    return re.compile(text, re.DOTALL)
