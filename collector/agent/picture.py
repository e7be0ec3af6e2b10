"""The newest that is known of a node, and whose picture it is."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from collector.agent.reader import ReaderState
from collector.mapping.attribution import Attribution
from collector.telemetry.tick import Tick


@dataclass(frozen=True, slots=True)
class Identity:
    """Who speaks. ``agent_id`` outlives restarts as its folder does; ``boot_id`` is one start."""

    cluster: str
    node: str
    agent_id: str
    boot_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    version: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """The newest that is known of the node. ``tick`` None: nothing was read yet.

    ``xids``: (GPU, code) -> how often, and when last; an Xid never clears by itself.
    ``taken_mono_s``: when, by a clock that never jumps; what is too old must not be shown.
    """

    state: ReaderState
    message: str
    tick: Tick | None
    attribution: Attribution
    taken_mono_s: float
    starts: int = 0
    hangs: int = 0
    costs: Mapping[str, tuple[int, float, float]] = field(default_factory=dict)
    ticks: int = 0
    undelivered: int = 0
    xids: Mapping[tuple[str, int], tuple[int, datetime]] = field(default_factory=dict)
    energy_disagreement: Mapping[str, float] = field(default_factory=dict)
