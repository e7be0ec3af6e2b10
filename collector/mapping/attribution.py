"""The two joins, kept apart: who holds a device (money), and whose process is on it (activity)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

Place = tuple[str, str | None]  # gpu_uuid, mig_uuid


@dataclass(frozen=True, slots=True)
class Holding:
    """One holder of one device. ``key`` names it as ``kind:id`` (slurm, pod, container, user).

    ``share_num / share_den``: its part of a device that is handed out in replicas or shards.
    """

    key: str
    gpu_uuid: str
    mig_uuid: str | None = None
    share_num: int = 1
    share_den: int = 1
    user_name: str | None = None
    account: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class ProcessOwner:
    """Whose process a pid is. A pid is only the same process while ``started_at`` is the same.

    ``name``: what people call its container.
    """

    started_at: datetime | None = None
    user_name: str | None = None
    key: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Attribution:
    """What the mapping knows at one tick. ``errors``: mapping source -> what failed, in words.

    ``age_s``: above 0 where a source failed and its last good answer is kept; ``unattributed``:
    processes on a GPU that are nobody's here; ``cgroups``: owner -> its control group's path.
    """

    holdings: tuple[Holding, ...] = ()
    owners: Mapping[int, ProcessOwner] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    age_s: float = 0.0
    unattributed: int = 0
    cgroups: Mapping[str, str] = field(default_factory=dict)

    def by_place(self) -> dict[Place, list[Holding]]:
        """The holders of each device and MIG instance."""
        found: dict[Place, list[Holding]] = {}
        for holding in self.holdings:
            found.setdefault((holding.gpu_uuid, holding.mig_uuid), []).append(holding)
        return found
