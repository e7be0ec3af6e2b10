"""Rules of a real cluster that decide who may run where, and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Partition:
    """A named set of nodes. `None` means no limit. A higher `tier` is served first."""

    name: str
    nodes: tuple[str, ...]
    max_limit_s: int | None = None
    max_gpus_per_job: int | None = None
    max_nodes_per_job: int | None = None
    tier: int = 0
    default: bool = False

    def with_nodes(self, left: Sequence[str], added: Sequence[str]) -> Partition:
        kept = set(left)
        nodes = (*(node for node in self.nodes if node in kept), *added)
        return replace(self, nodes=nodes)


class Scope(StrEnum):
    """What one counter of a limit adds up."""

    ALL = "all"
    USER = "user"
    ACCOUNT = "account"
    JOB = "job"


@dataclass(frozen=True, slots=True)
class Limit:
    """An association's or a QoS's limit: at most so many GPUs or running jobs at once, per user,
    per account or together. It binds the jobs whose qos, account, user and (first) partition equal
    those given here; `below`: accounts that it binds as well. Jobs of `but_qos`, and jobs in
    `but_partitions`, have a limit that goes before it: they are counted and not bound."""

    scope: Scope
    max_gpus: int | None = None
    max_jobs: int | None = None
    qos: str | None = None
    account: str | None = None
    partition: str | None = None
    user: str | None = None
    below: tuple[str, ...] = ()
    but_qos: tuple[str, ...] = ()
    but_partitions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reservation:
    """Nodes kept for the jobs that name the reservation, from `start_at` until `end_at`. Other
    jobs must be able to end before it starts, by their limit."""

    name: str
    nodes: tuple[str, ...]
    start_at: int
    end_at: int

    def with_nodes(self, left: Sequence[str]) -> Reservation:
        kept = set(left)
        return replace(self, nodes=tuple(node for node in self.nodes if node in kept))


class OutageKind(StrEnum):
    """A failed node kills its jobs; a drained one lets them end and takes no new ones."""

    FAIL = "fail"
    DRAIN = "drain"


@dataclass(frozen=True, slots=True)
class Outage:
    """A node that was away, in [down_at, up_at); `up_at` None means that it never came back."""

    node: str
    down_at: int
    up_at: int | None
    kind: OutageKind = OutageKind.FAIL
