"""Which limit counts where several that Slurm knows would bind one job.

Slurm takes each kind of limit where it is first set: in the QoS of the partition, in the QoS of the
job, in the association of the user, in those of the accounts up to the root. A job's QoS with the
flag OverPartQOS goes before that of the partition. So a QoS with a group limit of its own lets its
jobs exceed what their accounts may hold. What they hold still counts against the account.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from scheduler_advisor.engine.limits import Limit

GPUS = re.compile(r"(?:^|,)gres/gpu=(\d+)")
GROUP_GPUS, GROUP_JOBS = ("GrpTRES",), ("GrpJobs",)
OWN_JOBS = ("MaxJobsPU", "MaxJobsPA")  # either goes before what an association's users may run


def gpu_limit(text: str) -> int | None:
    """GPUs in a list of limits such as ``cpu=64,gres/gpu=8``; None: not limited."""
    found = GPUS.search(text)
    return int(found[1]) if found else None


def names_under(settings: Mapping[str, str], prefix: str) -> list[str]:
    """Whom settings such as ``qos.NAME.GrpTRES`` are about."""
    return sorted({key[len(prefix) :].rpartition(".")[0] for key in settings
                   if key.startswith(prefix)})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Before:
    """QoS of jobs, and partitions by their QoS, whose jobs a limit does not bind."""

    qos: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.qos or self.partitions)

    def spares(self, limit: Limit) -> Limit:
        """The limit without the jobs that another goes before."""
        return replace(limit, but_qos=self.qos, but_partitions=self.partitions)


class Hierarchy:
    """The QoS and partitions of one Slurm, from its settings."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = settings
        self._qos = names_under(settings, "qos.")
        self._of_partition = {
            name: settings[f"partition.{name}.QoS"]
            for name in names_under(settings, "partition.")
            if settings.get(f"partition.{name}.QoS", "N/A") not in ("", "N/A", "(null)")
        }

    def sets(self, qos: str, column: str) -> bool:
        """Whether the QoS limits GPUs or jobs by this column."""
        text = self._settings.get(f"qos.{qos}.{column}", "")
        return gpu_limit(text) is not None if "TRES" in column else text.isdigit()

    def before_accounts(self, columns: tuple[str, ...]) -> Before:
        """What goes before a limit of an account or a user."""
        return Before(
            tuple(qos for qos in self._qos if self._any(qos, columns)),
            tuple(name for name, qos in self._of_partition.items() if self._any(qos, columns)),
        )

    def before_job_qos(self, qos: str, column: str) -> Before:
        """What goes before the limit that a job has by its QoS."""
        if self._over(qos):
            return Before()
        return Before(
            partitions=tuple(
                name
                for name, own in self._of_partition.items()
                if own != qos and self.sets(own, column)
            )
        )

    def before_partition_qos(self, qos: str, column: str) -> Before:
        """What goes before the limit of all jobs in the partitions that have this QoS."""
        return Before(
            tuple(
                each
                for each in self._qos
                if each != qos and self._over(each) and self.sets(each, column)
            )
        )

    def _any(self, qos: str, columns: tuple[str, ...]) -> bool:
        return any(self.sets(qos, column) for column in columns)

    def _over(self, qos: str) -> bool:
        return "OverPartQOS" in self._settings.get(f"qos.{qos}.Flags", "").split(",")
