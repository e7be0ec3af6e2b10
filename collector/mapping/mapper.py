"""What the collection asks of a mapping."""

from __future__ import annotations

from typing import Protocol

from collector.mapping.attribution import Attribution
from collector.telemetry.tick import Tick


class Mapper(Protocol):
    """Says who holds and who uses the devices of a tick."""

    def attribute(self, tick: Tick) -> Attribution:
        """Never raises for a source that fails: the failure is part of the answer."""
        ...
