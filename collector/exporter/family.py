"""Metric families and their text, without an object per sample.

The library's own path spends most of a scrape on one object and one label dict per sample. Here a
sample is its finished label text and a number; texts are kept between scrapes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


@dataclass(slots=True)
class Family:
    """One metric with all its series.

    ``samples``: (label text as `labels` makes it, value). Never NaN: what is unknown is absent.
    """

    name: str
    kind: str  # gauge, counter
    help: str
    samples: list[tuple[str, float]] = field(default_factory=list)

    def add(self, labels: str, value: float | None) -> None:
        """Add a series; a missing or not finite value adds none."""
        if value is not None and math.isfinite(value):
            self.samples.append((labels, value))


def labels(pairs: Mapping[str, object]) -> str:
    """``{a="x",b="y"}`` with escapes; labels without a value are left out."""
    inside = ",".join(
        f'{name}="{_escape(value)}"' for name, value in pairs.items() if value is not None
    )
    return f"{{{inside}}}" if inside else ""


def render(families: Iterable[Family], *, openmetrics: bool = False) -> bytes:
    """The exposition text; families without a series are left out."""
    parts: list[str] = []
    for family in families:
        if not family.samples:
            continue
        name, kind = family.name, family.kind
        if openmetrics and kind == "counter":
            # There a counter's samples must end in _total; names of others that do not are unknown.
            kind = "counter" if name.endswith("_total") else "unknown"
            name = name.removesuffix("_total")
        parts.append(_head(name, kind, family.help))
        series = family.name
        parts.extend([f"{series}{text} {value!r}\n" for text, value in family.samples])
    if openmetrics:
        parts.append("# EOF\n")
    return "".join(parts).encode()


def exposition(families: Iterable[Family], accept: str | None) -> tuple[bytes, str]:
    """Body and content type for what a scraper accepts."""
    openmetrics = accept is not None and "application/openmetrics-text" in accept
    return render(families, openmetrics=openmetrics), OPENMETRICS if openmetrics else TEXT


def _escape(value: object) -> str:
    text = str(value)
    if "\\" in text or '"' in text or "\n" in text:
        return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
    return text


@lru_cache(maxsize=1024)  # names and helps are fixed
def _head(name: str, kind: str, text: str) -> str:
    return f"# HELP {name} {_help(text)}\n# TYPE {name} {kind}\n"


def _help(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")
