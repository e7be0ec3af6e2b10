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
class CheckpointClass:
    """Jobs from ``effective_from`` on; None = any cluster, account, job name. The narrowest class
    that a job is in decides: one that names its job comes before one that names its account."""

    effective_from: datetime
    cluster: str | None = None
    account: str | None = None
    job_name: str | None = None

    @property
    def text(self) -> str:
        """Whose, since when."""
        return (
            f"{self.cluster or 'every cluster'}, account {self.account or 'any'}, "
            f"job {self.job_name or 'any'}, from {self.effective_from.isoformat()}"
        )

    def key(self) -> list[object]:
        return [self.cluster, self.account, self.job_name, self.effective_from]


def checked_interval_s(interval_s: float) -> float:
    """The interval; SettingError where no job could have it."""
    if not 0 < interval_s <= MOST_S:
        raise SettingError(
            f"checkpoint interval {interval_s:g} s: it must lie above 0 and up to 30 days"
        )
    return interval_s


def declare_interval(
    work: Work, of: CheckpointClass, interval_s: float, *, at: datetime, actor: str
) -> None:
    """Declare it; a row of the same class and instant is replaced. SettingError where it would
    reach into a closed day."""
    interval_s = checked_interval_s(interval_s)
    before = _taken_out(work, of)
    row = {
        "cluster": of.cluster, "account": of.account, "job_name": of.job_name,
        "interval_s": interval_s, "effective_from": of.effective_from, "source": actor,
    }  # fmt: skip
    work.append("checkpoint_interval", {name: [value] for name, value in row.items()})
    note(work, at, actor, "checkpoint.declare", of.text,
         before=None if before is None else f"{before:g} s", after=f"{interval_s:g} s")  # fmt: skip


def remove_interval(work: Work, of: CheckpointClass, *, at: datetime, actor: str) -> None:
    """Take a declaration back. SettingError where there is none, or a closed day rests on it."""
    before = _taken_out(work, of)
    if before is None:
        raise SettingError(f"no checkpoint interval is declared for {of.text}: see list")
    note(work, at, actor, "checkpoint.remove", of.text, before=f"{before:g} s")


def _taken_out(work: Work, of: CheckpointClass) -> float | None:
    """What was declared of the class, which is so no more; None where nothing was."""
    refuse_closed(work, of.cluster, of.effective_from, "checkpoint interval")
    before: float | None = work.value(
        f"SELECT max(interval_s) FROM checkpoint_interval WHERE {_SAME}",  # noqa: S608 - our own names
        of.key(),
    )
    work.execute(f"DELETE FROM checkpoint_interval WHERE {_SAME}", of.key())  # noqa: S608 - our own names
    return before


def interval_rows(work: Work) -> list[dict[str, Any]]:
    """Everything declared, by class and start."""
    return work.rows(
        "SELECT cluster, account, job_name, interval_s, effective_from, source "
        "FROM checkpoint_interval "
        "ORDER BY cluster NULLS FIRST, account NULLS FIRST, job_name NULLS FIRST, effective_from"
    )
