"""How often jobs of a class write a checkpoint, as somebody declared it: what a run that was thrown
out has lost is worked out from it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from analytics.audit import note
from analytics.errors import SettingError
from analytics.ledger.settings import refuse_closed
from collector.store import Work

MOST_S = 30 * 86_400
_SAME = (
    "cluster IS NOT DISTINCT FROM ? AND account IS NOT DISTINCT FROM ? "
    "AND job_name IS NOT DISTINCT FROM ? AND effective_from = ?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointInterval:
    """From ``effective_from`` on; None = any cluster, account, job name. The narrowest row that
    fits a job decides: what names its job comes before what names its account."""

    interval_s: float
    effective_from: datetime
    cluster: str | None = None
    account: str | None = None
    job_name: str | None = None

    def __post_init__(self) -> None:
        if not 0 < self.interval_s <= MOST_S:
            raise SettingError(
                f"checkpoint interval {self.interval_s:g} s: it must lie above 0 and up to 30 days"
            )

    @property
    def text(self) -> str:
        """Whose, since when."""
        return (
            f"{self.cluster or 'every cluster'}, account {self.account or 'any'}, "
            f"job {self.job_name or 'any'}, from {self.effective_from.isoformat()}"
        )

    def key(self) -> list[object]:
        return [self.cluster, self.account, self.job_name, self.effective_from]


def declare_interval(work: Work, wanted: CheckpointInterval, *, at: datetime, actor: str) -> None:
    """Declare it; a row of the same class and instant is replaced. SettingError where it would
    reach into a closed day."""
    refuse_closed(work, wanted.cluster, wanted.effective_from, "checkpoint interval")
    before = work.value(
        f"SELECT max(interval_s) FROM checkpoint_interval WHERE {_SAME}",  # noqa: S608 - our own names
        wanted.key(),
    )
    work.execute(f"DELETE FROM checkpoint_interval WHERE {_SAME}", wanted.key())  # noqa: S608 - our own names
    row = {
        "cluster": wanted.cluster, "account": wanted.account, "job_name": wanted.job_name,
        "interval_s": wanted.interval_s, "effective_from": wanted.effective_from, "source": actor,
    }  # fmt: skip
    work.append("checkpoint_interval", {name: [value] for name, value in row.items()})
    note(work, at, actor, "checkpoint.declare", wanted.text,
         before=None if before is None else f"{before:g} s",
         after=f"{wanted.interval_s:g} s")  # fmt: skip


def remove_interval(work: Work, wanted: CheckpointInterval, *, at: datetime, actor: str) -> None:
    """Take a declaration back. SettingError where there is none, or a closed day rests on it."""
    refuse_closed(work, wanted.cluster, wanted.effective_from, "checkpoint interval")
    before = work.value(
        f"SELECT max(interval_s) FROM checkpoint_interval WHERE {_SAME}",  # noqa: S608 - our own names
        wanted.key(),
    )
    if before is None:
        raise SettingError(f"no checkpoint interval is declared for {wanted.text}: see list")
    work.execute(f"DELETE FROM checkpoint_interval WHERE {_SAME}", wanted.key())  # noqa: S608 - our own names
    note(work, at, actor, "checkpoint.remove", wanted.text, before=f"{before:g} s")


def interval_rows(work: Work) -> list[dict[str, Any]]:
    """Everything declared, by class and start."""
    return work.rows(
        "SELECT cluster, account, job_name, interval_s, effective_from, source "
        "FROM checkpoint_interval "
        "ORDER BY cluster NULLS FIRST, account NULLS FIRST, job_name NULLS FIRST, effective_from"
    )
