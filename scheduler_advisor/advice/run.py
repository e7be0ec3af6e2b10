"""A run of a job as advice sees it: whose it is, what it asked for, when it held what."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from scheduler_advisor.advice.draft import Owner


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One GPU run that touched the window. ``team`` None = the account is mapped to no team."""

    cluster: str
    run_id: str
    job_id: str
    attempt: int
    name: str | None
    user_name: str | None
    account: str | None
    team: str | None
    project: str | None
    qos: str | None
    queue: str | None
    gpu_model: str | None
    gpus: int
    nodes: int | None
    cpus: int | None
    mem_mib: int | None
    limit_s: int | None
    req_mem_mib: int | None
    submit_at: datetime
    start_at: datetime | None
    end_at: datetime | None
    state: str
    reason: str | None

    @property
    def owner(self) -> Owner:
        """Who has to be asked."""
        return Owner(team=self.team or self.account, user=self.user_name)

    @property
    def label(self) -> str:
        """The job's name, or its number."""
        return self.name or f"job {self.job_id}"

    @property
    def claim(self) -> str:
        """What advice about this run's held time wins back."""
        return f"run:{self.cluster}/{self.run_id}"

    def ended(self, at: datetime) -> bool:
        """Whether it had ended by ``at``."""
        return self.end_at is not None and self.end_at <= at

    def facts(self) -> dict[str, str | None]:
        """What the goals' matches look at."""
        return {
            "team": self.team or self.account, "user": self.user_name, "queue": self.queue,
            "qos": self.qos, "job_name": self.name,
        }  # fmt: skip
