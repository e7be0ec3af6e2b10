"""MIG slices with the placements that the hardware has (MIG user guide, supported profiles).

A profile takes a run of memory slices that may begin at given slices only, and its sevenths (A30:
quarters) of the multiprocessors; two instances never overlap. Media-extension profiles have the
geometry of their plain ones and are left out.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from io import StringIO

WHOLE = 1000


@dataclass(frozen=True, slots=True)
class Profile:
    """One kind of slice. `compute` of `of_compute` parts of the multiprocessors, `slices` of
    `of_slices` memory slices from one of `starts` on."""

    name: str
    compute: int
    of_compute: int
    slices: int
    of_slices: int
    starts: tuple[int, ...]
    memory_gb: int

    def bits(self, start: int) -> int:
        """The memory slices that it takes from `start` on, as bits."""
        return ((1 << self.slices) - 1) << start

    @property
    def compute_milli(self) -> int:
        """Thousandths of the GPU's multiprocessors, rounded up: 1 of 7 serves a seventh."""
        return -(-WHOLE * self.compute // self.of_compute)

    @property
    def bandwidth_milli(self) -> int:
        """Thousandths of the GPU's memory and its bandwidth."""
        return WHOLE * self.slices // self.of_slices


@cache
def profiles_of(gpu_model: str) -> tuple[Profile, ...]:
    """The profiles of a model, smallest first; none where it has no MIG. Memory in the name picks
    between variants (A100 40 GB or 80 GB; an A100 that does not say has 80)."""
    words = gpu_model.upper().replace("_", "-").replace(" ", "-").split("-")
    models = [model for model in _tables() if model.split("-")[0] in words]
    exact = [model for model in models if model.split("-")[1] in words]
    chosen = exact or models[-1:]
    return _tables()[chosen[0]] if chosen else ()


@cache
def _tables() -> dict[str, tuple[Profile, ...]]:
    text = files(__package__).joinpath("mig.csv").read_text("utf-8")
    tables: dict[str, list[Profile]] = {}
    for row in csv.DictReader(StringIO(text)):
        profile = Profile(
            row["profile"],
            int(row["compute"]),
            int(row["of_compute"]),
            int(row["slices"]),
            int(row["of_slices"]),
            tuple(int(start) for start in row["starts"].split("|")),
            int(row["memory_gb"]),
        )
        tables.setdefault(row["gpu_model"], []).append(profile)
    return {model: tuple(sorted(rows, key=_size)) for model, rows in tables.items()}


def _size(profile: Profile) -> tuple[int, int, str]:
    return profile.slices, profile.compute, profile.name


def serving(profiles: Sequence[Profile], gpu_milli: int, memory_gb: int = 0) -> Profile | None:
    """The smallest profile with so much of the multiprocessors, and of the memory."""
    fitting = [
        profile
        for profile in profiles
        if profile.compute_milli >= gpu_milli
        and (profile.memory_gb >= memory_gb if memory_gb else profile.bandwidth_milli > 0)
    ]
    return fitting[0] if fitting else None


def start_for(profiles: Sequence[Profile], taken: int, wanted: Profile) -> int | None:
    """Where to cut the slice so that the most placements of all profiles stay possible; ties: the
    lowest start. `taken` are the memory slices in use as bits. None: it has no room."""
    best = None
    for start in wanted.starts:
        if taken & wanted.bits(start):
            continue
        left = open_placements(profiles, taken | wanted.bits(start))
        if best is None or left > best[0]:
            best = (left, start)
    return None if best is None else best[1]


def open_placements(profiles: Iterable[Profile], taken: int) -> int:
    """How many placements of any profile are still possible."""
    return sum(not taken & profile.bits(start) for profile in profiles for start in profile.starts)
