"""The keys quota.*, fairshare.*, multifactor.* and preemption.* of a policy."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum

from scheduler_advisor.engine.errors import PolicyError

WEEK_S = 7 * 86_400
QUEUES = "queues"
TABLES = ("qos_priority", "account_priority", "partition_priority")


class Entitlement(StrEnum):
    """What a queue's usage is measured against when queues are put in order."""

    WEIGHT = "weight"
    GUARANTEE = "guarantee"
    TWO_STEP = "two-step"


class Reclaim(StrEnum):
    """Whose jobs a queue may stop that starts a job within its own entitlement: of queues above
    theirs (loose), and only down to it (strict)."""

    NONE = "none"
    LOOSE = "loose"
    STRICT = "strict"


class Victims(StrEnum):
    """Who is stopped first; ties: lower priority, younger, higher index."""

    LOWEST_PRIORITY = "lowest-priority"
    YOUNGEST = "youngest"
    LEAST_LOST = "least-lost"


class Stop(StrEnum):
    """What a victim keeps: what its last checkpoint saved, nothing, everything by a checkpoint
    written on the way out, or everything in place on its nodes."""

    REQUEUE = "requeue"
    SCRATCH = "scratch"
    CHECKPOINT = "checkpoint"
    SUSPEND = "suspend"


class Rank(StrEnum):
    """What makes one job more important than another."""

    PRIORITY = "priority"
    TIER = "tier"


class Reach(StrEnum):
    """Whose less important jobs a job may stop."""

    CLUSTER = "cluster"
    QUEUE = "queue"


class Eligible(StrEnum):
    """Which jobs can be stopped: those flagged preemptible, or all."""

    FLAGGED = "flagged"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class QueueRule:
    """One queue of the tree. GPUs: `guarantee`, `maximum` (None: all), `lend` (how much of an
    unused guarantee others may use; None: all of it). `weight`: share of what is above
    guarantees, and of usage over time. `parent`: a queue above it."""

    name: str
    guarantee: int = 0
    maximum: int | None = None
    weight: int = 1
    lend: int | None = None
    parent: str = ""

    def __post_init__(self) -> None:
        for key in ("guarantee", "maximum", "weight", "lend"):
            value = getattr(self, key)
            if value is not None and value < 0:
                raise PolicyError(
                    f"policy: quota.queues.{self.name}.{key} is {value}; must be 0 or more"
                )

    def check(self) -> None:
        """What only the whole rule shows; keys are read one by one."""
        if self.maximum is not None and self.maximum < self.guarantee:
            raise PolicyError(
                f"policy: quota.queues.{self.name}: maximum {self.maximum} is below its guarantee"
                f" {self.guarantee}"
            )


@dataclass(frozen=True, slots=True)
class QuotaPart:
    """Queues with guarantees and maxima. `by`: the job columns that name a job's queue, joined by
    "/" from the top (team, user, account, qos). `strict`: a job that cannot start blocks the rest
    of its queue. `reclaim_to`: the entitlement that reclaim restores."""

    by: str = "team"
    queues: tuple[QueueRule, ...] = ()
    reclaim: Reclaim = Reclaim.NONE
    reclaim_to: Entitlement = Entitlement.GUARANTEE
    strict: bool = False

    def __post_init__(self) -> None:
        columns = self.by.split("/")
        known = ("team", "user", "account", "qos")
        if not set(columns) <= set(known) or len(set(columns)) != len(columns):
            raise PolicyError(f"policy: quota.by = {self.by}; join some of {', '.join(known)} by /")
        names = [queue.name for queue in self.queues]
        if len(set(names)) != len(names):
            raise PolicyError("policy: quota.queues names one queue twice")
        parents = {queue.name: queue.parent for queue in self.queues}
        for queue in self.queues:
            seen, above = {queue.name}, queue.parent
            while above:
                if above in seen:
                    raise PolicyError(f"policy: quota.queues: {queue.name} lies below itself")
                seen.add(above)
                above = parents.get(above) or above.rpartition("/")[0]
        if self.reclaim_to is Entitlement.WEIGHT:
            raise PolicyError("policy: quota.reclaim_to is guarantee or two-step, not weight")


@dataclass(frozen=True, slots=True)
class FairPart:
    """How usage is counted. `half_life_s`: usage that is so old counts half; 0: only what runs now
    counts. `period_s`: usage over time and multifactor priorities are worked out so often."""

    half_life_s: int = 0
    period_s: int = 300
    entitlement: Entitlement = Entitlement.WEIGHT

    def __post_init__(self) -> None:
        if self.half_life_s < 0 or self.period_s < 1:
            raise PolicyError("policy: fairshare.half_life_s must be 0 or more, period_s above 0")


@dataclass(frozen=True, slots=True)
class MultifactorPart:
    """Weights of the nine factors of a multifactor priority; a factor is between 0 and 1, the
    site's is the job's own priority, nice is taken off as it is. `*_priority`: names with the
    priority that each gives, the highest of them counting as 1."""

    age: int = 0
    association: int = 0
    fairshare: int = 0
    size: int = 0
    nice: int = 1
    partition: int = 0
    qos: int = 0
    site: int = 1
    tres_gpu: int = 0
    tres_cpu: int = 0
    tres_mem: int = 0
    max_age_s: int = WEEK_S
    favor_small: bool = False
    qos_priority: tuple[tuple[str, int], ...] = ()
    account_priority: tuple[tuple[str, int], ...] = ()
    partition_priority: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        if self.max_age_s < 1:
            raise PolicyError("policy: multifactor.max_age_s must be above 0")


@dataclass(frozen=True, slots=True)
class EvictionPart:
    """How running jobs are stopped. Guards: `min_run_s` in the attempt, `max_per_job` times,
    `max_per_hour` in all, `max_team_gpus_per_hour` of one queue (clock hours; 0: no such guard).
    `grace_s`: a victim runs on for so long. `gib_per_gpu`, `storage_gib_s`: size of a checkpoint
    and the bandwidth that all who write at once share (0: writing takes no time)."""

    victims: Victims = Victims.LOWEST_PRIORITY
    by: Rank = Rank.PRIORITY
    reach: Reach = Reach.CLUSTER
    eligible: Eligible = Eligible.FLAGGED
    mode: Stop = Stop.REQUEUE
    min_run_s: int = 0
    max_per_job: int = 0
    max_per_hour: int = 0
    max_team_gpus_per_hour: int = 0
    grace_s: int = 0
    gib_per_gpu: int = 0
    storage_gib_s: int = 0

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, int) and value < 0:
                raise PolicyError(f"policy: preemption.{item.name} is {value}; must be 0 or more")

    def check(self) -> None:
        """What only the whole part shows; keys are read one by one."""
        if self.gib_per_gpu and not self.storage_gib_s:
            raise PolicyError("policy: preemption.gib_per_gpu needs preemption.storage_gib_s")

    @property
    def takes_time(self) -> bool:
        """Victims do not leave at once."""
        writes = self.mode is Stop.CHECKPOINT and self.gib_per_gpu > 0
        return self.grace_s > 0 or writes


@dataclass(frozen=True, slots=True)
class OrderPart:
    """Predicted run times: `learn_from` ended jobs of a group before its mean is believed. Least
    attained service: `las_level_gpu_s` thresholds as "3600|36000"; "": service counts as it is."""

    learn_from: int = 3
    las_level_gpu_s: str = ""

    def __post_init__(self) -> None:
        if self.learn_from < 1:
            raise PolicyError("policy: ordering.learn_from must be above 0")
        self.levels()

    def levels(self) -> tuple[int, ...]:
        """Thresholds in GPU-seconds, ascending."""
        try:
            found = [int(text) for text in self.las_level_gpu_s.split("|") if text]
        except ValueError:
            found = [-1]
        if found != sorted(set(found)) or any(level < 1 for level in found):
            raise PolicyError(
                f"policy: ordering.las_level_gpu_s = {self.las_level_gpu_s};"
                " write ascending GPU-seconds as 3600|36000"
            )
        return tuple(found)


NO_QUOTA = QuotaPart()
WEIGHTED = FairPart()
UNWEIGHTED = MultifactorPart()
AT_ONCE = EvictionPart()
PLAIN_ORDER = OrderPart()
