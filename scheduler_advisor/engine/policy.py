"""A scheduling policy, composed of parts; the same text and hash whenever it is the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from scheduler_advisor.engine.errors import PolicyError
from scheduler_advisor.engine.hashes import VERSION, digest


class Order(StrEnum):
    """Who is first in the queue; ties by submit, then by index."""

    FIFO = "fifo"
    PRIORITY = "priority"
    LARGEST_FIRST = "largest-first"
    SJF_LIMIT = "sjf-limit"
    SJF_TRUE = "sjf-true"


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

    def __post_init__(self) -> None:
        for key in ("backfill_depth", "backfill_max_limit_s", "gang_timeout_s"):
            if getattr(self, key) < 0:
                raise PolicyError(f"policy: {key} is {getattr(self, key)}; must be 0 or more")
        if not self.gang and self.backfill not in (Backfill.NONE, Backfill.GREEDY):
            raise PolicyError(
                f"policy: gang = false goes with backfill none or greedy, not {self.backfill}:"
                " a reservation for a whole gang has no meaning where tasks start one by one"
            )

    @property
    def hash(self) -> str:
        """Equal for equal policies; changes with the engine's semantics."""
        return digest(VERSION, *(str(getattr(self, name)) for name in self.__slots__))

    def with_values(self, values: Mapping[str, object]) -> Policy:
        """The policy with keys as on the command line replaced, e.g. {"backfill.depth": "100"}."""
        from scheduler_advisor.engine.policy_text import parsed

        return replace(self, **parsed(values))
