"""The operator's settings that decide how time is posted; each is dated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from analytics.errors import SettingError
from collector.store import Work


@dataclass(frozen=True, slots=True)
class LedgerSettings:
    """What holds at one instant in one cluster.

    Attributes
    ----------
    headroom_gpus : GPUs that the operator chose to keep empty.
    pass_interval_s : how long a pending job must have fitted before its GPUs are `policy_blocked`.
    demand_quantile, demand_low, demand_high : quantiles of the demand profile and of its two
    bounds.
    demand_days, demand_min_jobs : history that the profile rests on; with fewer jobs there is none.
    demand_cpu_milli_per_gpu, demand_mem_mib_per_gpu : the operator's own profile, instead of
    history.
    purchase_type : which series of prices this cluster pays.
    hang_occupied_ratio : occupied at least so much is busy. hang_sm_ratio, hang_power_ratio (of the
    board's power) and hang_link_bytes_per_s : at most so much is the idle floor of each intensity.
    hang_start_gap_s : ranks of a gang that start further apart are suspected to wait for each
    other; the default is the timeout after which NCCL's first collective gives up by itself (10
    minutes in PyTorch), so whatever waits longer is noticed by nobody. 0 = never.
    hang_least_s : GPU time in an hour below which nothing is suspected.
    checkpoint_interval_s : how often the jobs of this cluster write a checkpoint; 0 = not declared.
    """

    headroom_gpus: int = 0
    pass_interval_s: int = 60
    demand_quantile: float = 0.25
    demand_low: float = 0.05
    demand_high: float = 0.50
    demand_days: int = 28
    demand_min_jobs: int = 20
    demand_cpu_milli_per_gpu: int | None = None
    demand_mem_mib_per_gpu: int | None = None
    activity_metric: str = "util_ratio"
    purchase_type: str = "on_demand"
    hang_occupied_ratio: float = 0.9
    hang_sm_ratio: float = 0.25
    hang_power_ratio: float = 0.35
    hang_link_bytes_per_s: int = 1_000_000
    hang_least_s: int = 600
    hang_start_gap_s: int = 600
    checkpoint_interval_s: int = 0


_KINDS: dict[str, Callable[[str], Any]] = {
    "headroom_gpus": int, "pass_interval_s": int, "demand_quantile": float, "demand_low": float,
    "demand_high": float, "demand_days": int, "demand_min_jobs": int,
    "demand_cpu_milli_per_gpu": int, "demand_mem_mib_per_gpu": int,
    "activity_metric": str, "purchase_type": str, "hang_occupied_ratio": float,
    "hang_sm_ratio": float, "hang_power_ratio": float, "hang_link_bytes_per_s": int,
    "hang_least_s": int, "hang_start_gap_s": int, "checkpoint_interval_s": int,
}  # fmt: skip


def put_setting(  # noqa: PLR0913 - each is a named part of the act
    work: Work,
    key: str,
    value: object,
    *,
    since: datetime,
    actor: str,
    cluster: str | None = None,
    now: datetime | None = None,
) -> None:
    """Set ``key`` from the first UTC day that begins at ``since`` or later.

    ``now``: when this was said, for the audit log; without it, ``since``. SettingError for an
    unknown key, a value that does not parse, or a day that is closed already.
    """
    if key not in _KINDS:
        raise SettingError(f"unknown ledger setting {key!r}: one of {', '.join(sorted(_KINDS))}")
    _parse(key, str(value))
    refuse_closed(work, cluster, since, f"ledger setting {key}")
    row = {"cluster": cluster, "key": key, "value": str(value), "effective_from": since}
    work.append("ledger_setting", {k: [v] for k, v in {**row, "source": actor}.items()})
    work.append(
        "audit",
        {"ts": [now or since], "actor": [actor], "action": ["setting.put"], "subject": [key],
         "after_value": [f"{value} from {since.isoformat()}, {cluster or 'every cluster'}"]},
    )  # fmt: skip


def refuse_closed(work: Work, cluster: str | None, since: datetime, what: str) -> None:
    """SettingError where a change from ``since`` on would reach into a closed day."""
    last = work.value(
        "SELECT max(day) FROM closed_day WHERE reopened_at IS NULL AND (cluster = ? OR ? IS NULL)",
        [cluster, cluster],
    )
    if last is not None and since.date() <= last:
        raise SettingError(
            f"{what}: {last} is closed and keeps its rules; let it hold from a later day on"
        )


def _parse(key: str, text: str) -> Any:
    try:
        value = _KINDS[key](text)
    except ValueError as error:
        raise SettingError(
            f"ledger setting {key}: {text!r} is no {_KINDS[key].__name__}"
        ) from error
    if isinstance(value, (int, float)) and value < 0:
        raise SettingError(f"ledger setting {key}: {text!r} is below 0")
    return value


@dataclass(frozen=True, slots=True)
class SettingHistory:
    """Every setting that a cluster ever had, read at once for questions about many days."""

    rows: list[dict[str, Any]]

    @classmethod
    def load(cls, work: Work, cluster: str) -> SettingHistory:
        """The cluster's own rows come after those of every cluster, and win."""
        return cls(
            work.rows(
                "SELECT key, value, effective_from FROM ledger_setting "
                "WHERE cluster = ? OR cluster IS NULL "
                "ORDER BY (cluster IS NOT NULL), effective_from, rowid",
                [cluster],
            )
        )

    def at(self, at: datetime) -> LedgerSettings:
        """The settings in force at an instant."""
        held = {row["key"]: row["value"] for row in self.rows if row["effective_from"] <= at}
        return LedgerSettings(**{key: _parse(key, value) for key, value in held.items()})

    def changes(self) -> list[datetime]:
        """The instants at which a setting begins to hold."""
        return sorted({row["effective_from"] for row in self.rows})


def settings_at(work: Work, cluster: str, at: datetime) -> LedgerSettings:
    """The settings in force at ``at``; the cluster's own row wins over a general one."""
    return SettingHistory.load(work, cluster).at(at)


def setting_rows(work: Work) -> list[dict[str, Any]]:
    """Everything that was set, by key and start."""
    return work.rows(
        "SELECT key, value, cluster, effective_from, source FROM ledger_setting "
        "ORDER BY key, cluster NULLS FIRST, effective_from, rowid"
    )
