"""The table of bandwidths and latencies per GPU model: line rates, as their sources state them."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from io import StringIO

from scheduler_advisor.engine.errors import PolicyError

STEPS = ("island", "node", "leaf", "spine", "core")


@dataclass(frozen=True, slots=True)
class Links:
    """What joins the GPUs of one model. `gb_s[k]`: 10^9 bytes per second and direction that one
    GPU has over step k of STEPS (island: NVLink; node: PCIe between islands; leaf: its network
    adapter through the leaf switch; spine: the leaf's uplinks; core: above the spines). `us[k]`:
    microseconds for one hop. `known` is False for the row of models that the table lacks."""

    gpu_model: str
    island_gpus: int
    gb_s: tuple[float, ...]
    us: tuple[float, ...]
    source: str
    known: bool

    def narrowed(self, oversubscription: float, changes: Mapping[str, float]) -> Links:
        """With uplinks shared by `oversubscription` times what they carry, and with bandwidths of
        steps replaced (0 or absent: the table's; a replaced uplink is not narrowed again)."""
        if oversubscription < 1:
            raise PolicyError(f"topology.oversubscription is {oversubscription}; must be 1 or more")
        gb_s = tuple(
            changes.get(step) or (rate / oversubscription if step in ("spine", "core") else rate)
            for step, rate in zip(STEPS, self.gb_s, strict=True)
        )
        return Links(self.gpu_model, self.island_gpus, gb_s, self.us, self.source, self.known)


def links_of(gpu_model: str) -> Links:
    """The row of a model: the longest name of the table that its words contain."""
    words = gpu_model.upper().replace("_", "-").replace(" ", "-").split("-")
    fitting = [
        row for row in shipped() if row.known and set(row.gpu_model.split("-")) <= set(words)
    ]
    if "PCIE" in words and not any("PCIE" in row.gpu_model for row in fitting):
        fitting = [row for row in fitting if row.island_gpus <= 2]
    if not fitting:
        return shipped()[-1]
    return max(fitting, key=lambda row: len(row.gpu_model))


@cache
def shipped() -> tuple[Links, ...]:
    """The shipped table; its last row is for models that it lacks."""
    text = files(__package__).joinpath("links.csv").read_text("utf-8")
    return read_links(text)


def read_links(text: str) -> tuple[Links, ...]:
    """A table of links in the form of the shipped one."""
    rows = []
    for line, row in enumerate(csv.DictReader(StringIO(text)), start=2):
        try:
            rows.append(
                Links(
                    row["gpu_model"],
                    int(row["island_gpus"]),
                    tuple(float(row[f"{step}_gb_s"]) for step in STEPS),
                    tuple(float(row[f"{step}_us"]) for step in STEPS),
                    row["source"],
                    row["gpu_model"] != "*",
                )
            )
        except (KeyError, TypeError, ValueError) as error:
            raise PolicyError(f"links: line {line}: {error}; columns as in links.csv") from error
    if not rows or rows[-1].known:
        raise PolicyError("links: the last row must be *, for models that the table lacks")
    return tuple(rows)
