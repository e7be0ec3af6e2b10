"""How a sentence is filled: numbers as usual, whole ones with separators, and two forms that
languages need.

``{runs:plural:run|runs}`` writes the number and the word that goes with it. ``{name:josa:이|가}``
writes the name and the Korean particle that fits its last sound: the first after a consonant.
"""

from __future__ import annotations

import string
from typing import Any

_HANGUL = range(0xAC00, 0xD7A4)
_CONSONANT_DIGITS = "013678"  # 영 일 삼 육 칠 팔 end in a consonant
_CONSONANT_LETTERS = "lmn"  # as the names of the letters are read in Korean


class Filling(string.Formatter):
    """A formatter that knows ``plural`` and ``josa``."""

    def format_field(self, value: Any, format_spec: str) -> str:
        """One field; everything else goes the usual way."""
        form, _, choices = format_spec.partition(":")
        if form == "plural":
            one, many = choices.split("|")
            return f"{value:,} {one if value == 1 else many}"
        if form == "josa":
            after_consonant, after_vowel = choices.split("|")
            return f"{value}{after_consonant if ends_in_consonant(str(value)) else after_vowel}"
        if not format_spec and isinstance(value, int) and not isinstance(value, bool):
            return f"{value:,}"
        return str(super().format_field(value, format_spec))


def ends_in_consonant(word: str) -> bool:
    """Whether the word's last sound, read in Korean, is a consonant."""
    last = word.rstrip(")]\"' ")[-1:].lower()
    if last and ord(last) in _HANGUL:
        return (ord(last) - _HANGUL.start) % 28 > 0
    return bool(last) and last in _CONSONANT_DIGITS + _CONSONANT_LETTERS
