"""What one import took in, and what it left out and why."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSummary:
    """Rows by kind: ``kept`` by table, ``dropped`` by reason; facts are known over the window."""

    cluster: str
    source: str
    since: datetime
    until: datetime
    kept: dict[str, int] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    gpu_seconds: int = 0
    """GPU-seconds that the kept allocations hold, open ones up to the instant they are known."""

    @property
    def kept_total(self) -> int:
        """Rows kept over all tables."""
        return sum(self.kept.values())

    @property
    def dropped_total(self) -> int:
        """Rows of the input that were left out."""
        return sum(self.dropped.values())

    def with_kept(self, more: dict[str, int]) -> ImportSummary:
        """The same summary with rows of further tables."""
        return replace(self, kept=self.kept | more)

    def lines(self) -> list[str]:
        """The summary for a terminal, one statement per line."""
        window = f"{self.since:%Y-%m-%d %H:%M:%S} to {self.until:%Y-%m-%d %H:%M:%S} UTC"
        kept = ", ".join(f"{count} {table}" for table, count in self.kept.items() if count)
        dropped = ", ".join(f"{count} {why}" for why, count in self.dropped.items() if count)
        return [
            f"cluster {self.cluster}: facts known from {window}",
            f"kept: {kept or 'nothing'}",
            f"left out: {dropped or 'nothing'}",
            *self.remarks,
        ]
