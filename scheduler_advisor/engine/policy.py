"""A scheduling policy, composed of parts; the same text and hash whenever it is the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from scheduler_advisor.engine.errors import PolicyError
from scheduler_advisor.engine.hashes import VERSION, digest
from scheduler_advisor.engine.live.settings import (
    AT_ONCE,
    NO_QUOTA,
    PLAIN_ORDER,
    UNWEIGHTED,
    WEIGHTED,
    EvictionPart,
    FairPart,
    MultifactorPart,
    OrderPart,
    QuotaPart,
    Reclaim,
)
from scheduler_advisor.engine.parts.settings import (
    ANY_TOPOLOGY,
    AS_ASKED,
    FIXED_SIZE,
    NO_DEFRAG,
    DefragPart,
    ElasticPart,
    SharingPart,
    TopologyPart,
)


class Order(StrEnum):
    """Who is first in the queue; ties by submit, then by index."""

    FIFO = "fifo"
    PRIORITY = "priority"
    LARGEST_FIRST = "largest-first"
    SJF_LIMIT = "sjf-limit"
    SJF_TRUE = "sjf-true"
    SJF_PREDICTED = "sjf-predicted"
    LAS = "las"
    MULTIFACTOR = "multifactor"
    FAIR_SHARE = "fair-share"
    DRF = "drf"


STATIC_ORDERS = (
    Order.FIFO,
    Order.PRIORITY,
    Order.LARGEST_FIRST,
    Order.SJF_LIMIT,
    Order.SJF_TRUE,
)


class Backfill(StrEnum):
    """Who may start while the head of the queue cannot."""

    NONE = "none"
    GREEDY = "greedy"
    EASY = "easy"
    CONSERVATIVE = "conservative"
    CONSERVATIVE_COMPRESS = "conservative-compress"


class Placement(StrEnum):
    """Which node a task goes to, among those that fit."""

    FIRST_FIT = "first-fit"
    BEST_FIT = "best-fit"
    WORST_FIT = "worst-fit"
    CONSOLIDATE = "consolidate"
    RANDOM = "random"
    FGD = "fgd"
    DOT_PRODUCT = "dot-product"
    TOPOLOGY = "topology"


class Ties(StrEnum):
    """How nodes of equal score are told apart (fgd, dot-product)."""

    NAME = "name"
    MOST_PACKED = "most-packed"
    RANDOM = "random"


class Preemption(StrEnum):
    """Who may be stopped for a job that cannot start."""

    NONE = "none"
    PRIORITY = "priority"


@dataclass(frozen=True, slots=True)
class Policy:
    """What decides which job starts when and where. Every field is one key of the command line."""

    order: Order = Order.FIFO
    backfill: Backfill = Backfill.NONE
    backfill_depth: int = 0  # queue positions behind the head examined per pass; 0: all
    backfill_max_limit_s: int = 0  # only jobs with a limit of at most this; 0: any
    gang: bool = True
    gang_timeout_s: int = 0  # a job that holds without running gives up after this; 0: never
    placement: Placement = Placement.BEST_FIT
    placement_ties: Ties = Ties.NAME
    preemption: Preemption = Preemption.NONE
    seed: int = 0
    topology: TopologyPart = ANY_TOPOLOGY
    defrag: DefragPart = NO_DEFRAG
    sharing: SharingPart = AS_ASKED
    elastic: ElasticPart = FIXED_SIZE
    backfill_whole_nodes: bool = False  # blocked jobs reserve whole nodes, each of those examined
    backfill_interval_s: int = 0  # behind a blocked job only at multiples of this; 0: every pass
    quota: QuotaPart = NO_QUOTA
    fair: FairPart = WEIGHTED
    multifactor: MultifactorPart = UNWEIGHTED
    eviction: EvictionPart = AT_ONCE
    ordering: OrderPart = PLAIN_ORDER

    def __post_init__(self) -> None:
        for key in (
            "backfill_depth",
            "backfill_max_limit_s",
            "gang_timeout_s",
            "backfill_interval_s",
        ):
            if getattr(self, key) < 0:
                raise PolicyError(f"policy: {key} is {getattr(self, key)}; must be 0 or more")
        if not self.gang and self.backfill not in (Backfill.NONE, Backfill.GREEDY):
            raise PolicyError(
                f"policy: gang = false goes with backfill none or greedy, not {self.backfill}:"
                " a reservation for a whole gang has no meaning where tasks start one by one"
            )
        self.eviction.check()
        for queue in self.quota.queues:
            queue.check()
        if self.backfill_whole_nodes and self.backfill is not Backfill.EASY:
            raise PolicyError(
                "policy: backfill.whole_nodes is a way to reserve; it goes with backfill easy"
            )
        if self.live and not self.gang:
            raise PolicyError(
                "policy: gang = false goes with static orders alone, without quotas, reclaim or"
                " timed preemption; use gang = true"
            )
        if self.live and self.backfill in (Backfill.CONSERVATIVE, Backfill.CONSERVATIVE_COMPRESS):
            raise PolicyError(
                "policy: conservative backfill plans an order that does not change; with"
                f" order {self.order}, quotas or preemption use easy"
            )

    @property
    def live(self) -> bool:
        """What may start depends on what is running: the general driver replays it."""
        return (
            self.order not in STATIC_ORDERS
            or self.backfill_whole_nodes
            or self.backfill_interval_s > 0
            or self.placement is Placement.TOPOLOGY
            or self.topology.slowdown
            or self.quota.queues != ()
            or self.quota.strict
            or self.quota.reclaim is not Reclaim.NONE
            or (self.preemption is not Preemption.NONE and self.eviction != AT_ONCE)
        )

    @property
    def hash(self) -> str:
        """Equal for equal policies; changes with the engine's semantics."""
        return digest(VERSION, *(str(getattr(self, name)) for name in self.__slots__))

    def with_values(self, values: Mapping[str, object]) -> Policy:
        """The policy with keys as on the command line replaced, e.g. {"backfill.depth": "100"}."""
        from scheduler_advisor.engine.policy_text import parsed

        return replace(self, **parsed(values, self))
