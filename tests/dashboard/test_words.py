"""Every language has every text, with the same fields, and every text is used."""

from __future__ import annotations

import re
from pathlib import Path
from string import Formatter

import pytest

import dashboard
from dashboard.palette import CLASSES
from dashboard.words import FOLDER, LANGUAGES, Words, texts
from scheduler_advisor.followup.measure import MEASURES

SOURCES = [path.read_text("utf-8") for path in Path(dashboard.__file__).parent.rglob("*.py")]


def fields(text):
    return sorted(name for _, name, _, _ in Formatter().parse(text) if name)


def test_there_is_one_file_per_language():
    assert {path.stem for path in FOLDER.glob("*.toml")} == set(LANGUAGES)


@pytest.mark.parametrize("language", sorted(set(LANGUAGES) - {"en"}))
def test_no_text_is_missing_and_all_take_the_same_fields(language):
    english, other = texts("en"), texts(language)
    assert set(other) == set(english)
    for name, text in english.items():
        assert fields(other[name]) == fields(text), name
        assert other[name].strip(), name


def test_every_text_is_used():
    written = "\n".join(SOURCES)
    computed = {match + "." for match in re.findall(r'f["\'](\w+)\.\{', written)}
    computed_ends = set(re.findall(r'f["\']\{name\}\.(\w+)["\']', written))
    for name in texts("en"):
        used = (
            re.search(f"[\"']{re.escape(name)}[\"']", written)
            or any(name.startswith(start) for start in computed)
            or name.rpartition(".")[2] in computed_ends
        )
        assert used, f"{name} is in no page"


def test_every_ledger_class_has_a_name_and_a_meaning():
    words = Words("en")
    for name in CLASSES:
        assert words(f"class.{name}")
        assert words(f"class_help.{name}")


def test_every_kind_of_advice_that_is_followed_up_has_a_name():
    for kind in MEASURES:
        assert f"followed_kind.{kind}" in texts("en")
