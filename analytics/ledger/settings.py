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


_KINDS: dict[str, Callable[[str], Any]] = {
    "headroom_gpus": int, "pass_interval_s": int, "demand_quantile": float, "demand_low": float,
    "demand_high": float, "demand_days": int, "demand_min_jobs": int,
    "demand_cpu_milli_per_gpu": int, "demand_mem_mib_per_gpu": int,
    "activity_metric": str, "purchase_type": str,
}  # fmt: skip


def put_setting(
    work: Work, key: str, value: object, *, since: datetime, cluster: str | None = None, actor: str
) -> None:
    """Set ``key`` from ``since`` on; SettingError for an unknown key or a value that does not
    parse."""
    if key not in _KINDS:
        raise SettingError(f"unknown ledger setting {key!r}: one of {', '.join(sorted(_KINDS))}")
    _parse(key, str(value))
    row = {"cluster": cluster, "key": key, "value": str(value), "effective_from": since}
    work.append("ledger_setting", {k: [v] for k, v in {**row, "source": actor}.items()})
    work.append(
        "audit",
        {"ts": [since], "actor": [actor], "action": ["setting.put"], "subject": [key],
         "after_value": [str(value)]},
    )  # fmt: skip


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


def settings_at(work: Work, cluster: str, at: datetime) -> LedgerSettings:
    """The settings in force at ``at``; the cluster's own row wins over a general one."""
    rows = work.rows(
        "SELECT key, value FROM ledger_setting WHERE (cluster = ? OR cluster IS NULL) "
        "AND effective_from <= ? ORDER BY (cluster IS NOT NULL), effective_from, value",
        [cluster, at],
    )
    return LedgerSettings(**{row["key"]: _parse(row["key"], row["value"]) for row in rows})
