"""Every sentence that the code asks for by name exists in every language."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import scheduler_advisor
from scheduler_advisor.messages import LANGUAGES

PACKAGE = Path(scheduler_advisor.__file__).parent
ASKED = re.compile(r'\b(?:words|sentences)\.say\(\s*"([a-z_.0-9]+)"')


def keys_of(table, before=""):
    for name, value in table.items():
        if isinstance(value, dict):
            yield from keys_of(value, f"{before}{name}.")
        else:
            yield f"{before}{name}"


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_key_named_in_the_code_is_in_the_file(language):
    path = PACKAGE / "messages" / f"{language}.toml"
    known = set(keys_of(tomllib.loads(path.read_text("utf-8"))))
    asked = {
        (file.name, key)
        for file in PACKAGE.rglob("*.py")
        for key in ASKED.findall(file.read_text("utf-8"))
    }
    assert len(asked) > 50
    assert not [(file, key) for file, key in sorted(asked) if key not in known]
