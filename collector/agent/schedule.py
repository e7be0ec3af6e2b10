"""Which values are read at which tick: the dearer for the driver, the rarer."""

from __future__ import annotations

from dataclasses import dataclass, field

from collector.telemetry.source import Group


@dataclass(frozen=True, slots=True)
class Intervals:
    """Seconds between two readings of each group. Process lists take milliseconds under the
    driver's lock, so nobody reads them every second."""

    load_s: float = 15.0
    process_s: float = 15.0
    link_s: float = 15.0
    health_s: float = 60.0
    topology_s: float = 600.0

    def of(self, group: Group) -> float:
        """The interval of one group."""
        return float(getattr(self, f"{group}_s"))


@dataclass(slots=True)
class Schedule:
    """Says what is due; times are those of a clock that never jumps."""

    intervals: Intervals
    _last: dict[Group, float] = field(default_factory=dict)

    def due(self, mono_s: float) -> frozenset[Group]:
        """The groups due now; asking counts as reading them."""
        # Half a base step early is on time: ticks never come at the exact instant.
        slack = self.intervals.load_s / 2
        due = frozenset(
            group
            for group in Group
            if group not in self._last
            or mono_s - self._last[group] >= self.intervals.of(group) - slack
        )
        self._last |= dict.fromkeys(due, mono_s)
        return due
