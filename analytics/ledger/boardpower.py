"""How much power a board of a model draws at most, and below which nothing can be working."""

from __future__ import annotations

import csv
from functools import cache
from importlib import resources
from io import StringIO

import numpy as np

from analytics.gpu_models import normalised
from analytics.ledger.frame import Frame
from analytics.ledger.kernel.state import Array


@cache
def board_watts() -> dict[str, int]:
    """Normalised model of the price book -> power of the board in watts, by its data sheet."""
    file = resources.files("analytics").joinpath("data/gpu_power.csv")
    rows = csv.DictReader(StringIO(file.read_text(encoding="utf-8")))
    return {normalised(row["gpu_model"]): int(row["board_w"]) for row in rows}


def idle_floors(frame: Frame, ratio: float) -> Array:
    """Per pool ``ratio`` of its board's power in mW; 0 = the model's power is not known."""
    known, floors = board_watts(), {}
    for model in {model for _, model in frame.fleet.pools}:
        names = frame.prices.names.candidates(model)
        watts = next((known[name] for name in names if name in known), 0)
        floors[model] = round(watts * 1000 * ratio)
    return np.array([floors[model] for _, model in frame.fleet.pools], np.int64)
