"""From the names that schedulers and drivers give a GPU to the model names of the price book."""

from __future__ import annotations

import csv
import re
from functools import cache
from importlib import resources
from io import StringIO

from collector.store import Work

_NOISE = re.compile(r"\b(nvidia|geforce)\b[\s_-]*")


def normalised(raw: str) -> str:
    """A GPU name without maker, case and doubled blanks, for joining."""
    return _NOISE.sub("", raw.strip().lower()).replace("_", "-").strip(" -")


@cache
def shipped_aliases() -> dict[str, str]:
    """Normalised raw name -> model of the shipped price list; a blank model is known and
    unpriced."""
    file = resources.files("analytics").joinpath("data/gpu_models.csv")
    rows = csv.DictReader(StringIO(file.read_text(encoding="utf-8")))
    return {normalised(row["raw_name"]): row["gpu_model"] for row in rows if row["gpu_model"]}


class ModelNames:
    """Which price-book models a raw name may mean, best first: itself, the site's alias, the
    shipped one."""

    def __init__(self, site: dict[str, str], shipped: dict[str, str]) -> None:
        self._site = {normalised(raw): model for raw, model in site.items()}
        self._shipped = shipped

    @classmethod
    def load(cls, work: Work) -> ModelNames:
        rows = work.rows("SELECT raw_name, gpu_model FROM gpu_model_alias")
        site = dict(sorted((row["raw_name"], row["gpu_model"]) for row in rows))
        return cls(site, shipped_aliases())

    def candidates(self, raw: str) -> list[str]:
        """Normalised price-book models for ``raw``, without doubles, best first."""
        name = normalised(raw)
        found = [name, self._site.get(name), self._shipped.get(name)]
        if name in self._site:
            found = [self._site[name], name, self._shipped.get(name)]
        return list(dict.fromkeys(normalised(model) for model in found if model))
