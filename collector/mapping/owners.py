"""Whose process a pid is, remembered under (pid, start time) because pids are reused."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from collector.mapping.attribution import ProcessOwner
from collector.mapping.cgroup import Membership, membership
from collector.mapping.containers import ContainerName, ContainerNames
from collector.mapping.process import Process, ProcReader

_MPS_DAEMONS = frozenset({"nvidia-cuda-mps", "nvidia-cuda-mps-server", "nvidia-cuda-mps-control"})


@dataclass(frozen=True, slots=True)
class Known:
    """A process with what it belongs to. ``mps_percent``: its part of the SMs under MPS."""

    process: Process
    member: Membership
    owner: ProcessOwner
    mps_percent: int | None = None
    is_mps_daemon: bool = False


class Owners:
    """Looks processes up once and remembers them for as long as they are on a GPU."""

    def __init__(
        self,
        proc: ProcReader,
        pod_name: Callable[[str], str | None],
        containers: ContainerNames | None = None,
    ) -> None:
        """``pod_name``: a pod's UID -> ``namespace/name``, None where it is not known."""
        self._proc = proc
        self._pod_name = pod_name
        self._containers = containers or ContainerNames()
        self._known: dict[tuple[int, int], Known] = {}
        self.missing = 0
        self.strange: set[str] = set()

    def of(self, pids: Iterable[int]) -> dict[int, Known]:
        """Every pid that is a visible process. What is not is counted in ``missing``."""
        found: dict[int, Known] = {}
        fresh: dict[tuple[int, int], Known] = {}
        self.missing = 0
        for pid in set(pids):
            key = (pid, self._proc.start_ticks(pid) or 0)
            known = self._known.get(key)
            if known is None:
                process = self._proc.read(pid)
                if process is None:
                    self.missing += 1
                    continue
                key, known = (pid, process.start_ticks), self._identify(process)
            fresh[key] = found[pid] = known
        self._known = fresh
        return found

    def _identify(self, process: Process) -> Known:
        member = membership(process.cgroup)
        if member.strange is not None and len(self.strange) < 100:
            self.strange.add(member.strange)
        environment = self._proc.environment(process.pid)
        user = self._proc.user_name(process.uid)
        container = ContainerName()
        if member.container_id is not None:
            container = self._containers.of(member.container_id)
        key = self._key(member, environment.get("SLURM_JOB_ID"), user, container.pod)
        percent = environment.get("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "")
        return Known(
            process,
            member,
            ProcessOwner(process.started_at, user, key, container.name),
            mps_percent=int(percent) if percent.isdigit() and 0 < int(percent) <= 100 else None,
            is_mps_daemon=self._proc.command(process.pid) in _MPS_DAEMONS,
        )

    def _key(self, member: Membership, slurm_job: str | None, user: str, pod: str | None) -> str:
        if member.job_id is not None:
            return f"slurm:{member.job_id}"
        if member.sluid is not None or member.strange is not None:
            # The path does not give the job's id; the environment of a job's process does.
            return f"slurm:{slurm_job}" if slurm_job else f"sluid:{member.sluid or member.strange}"
        if member.pod_uid is not None:
            return f"pod:{self._pod_name(member.pod_uid) or pod or member.pod_uid}"
        if slurm_job and slurm_job.isdigit():
            return f"slurm:{slurm_job}"  # adopted by ssh, or started where cgroups are off
        if member.container_id is not None:
            return f"container:{member.container_id[:12]}"
        return f"user:{user}"
