"""Labels of jobs: Kubernetes labels, or what users write into a Slurm job's comment.

A label is a key and a value. Texts that are understood: a JSON object, or ``key=value`` or
``key:value`` parted by commas, semicolons or blanks, such as ``team=nlp, stage=train``. Other words
are no labels.
"""

from __future__ import annotations

import json
import re

from analytics.org import folded

_PAIR = re.compile(r"([A-Za-z0-9][A-Za-z0-9._/-]*)\s*[=:]\s*([^\s,;=]+)")


def labels_of(text: str | None) -> dict[str, str]:
    """The labels in a text, keys folded; an empty dict where there is none."""
    if not text or not text.strip():
        return {}
    if text.lstrip().startswith("{"):
        return _from_json(text)
    return {folded(key): value.strip("\"'") for key, value in _PAIR.findall(text)}


def _from_json(text: str) -> dict[str, str]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return {
        folded(str(key)): str(value)
        for key, value in found.items()
        if isinstance(value, (str, int, float)) and str(value).strip()
    }


def kept(text: str | None, keys: frozenset[str]) -> str | None:
    """The labels whose keys are asked for, as `ledger_holder` keeps them: sorted ``key=value``
    lines; None where there is none."""
    found = labels_of(text)
    lines = [f"{key}={found[key]}" for key in sorted(keys & found.keys())]
    return "\n".join(lines) or None
