"""What a process belongs to, by the path of its control group."""

from __future__ import annotations

import re
from dataclasses import dataclass

# Slurm in both hierarchies: v1 slurm[_host]/uid_1/job_7/.., v2 [host_]slurmstepd.scope/job_7/..
_SLURM = re.compile(
    r"(?:^|/)(?:[^/]+_)?slurm(?:stepd\.scope|_[^/]+)?(?:/(?:system|user)\.slice)?"
    r"(?:/uid_(?P<uid>\d+))?/job_(?P<job>\d+)(?:/step_(?P<step>[^/]+))?"
)
# From Slurm 26.05 the job's directory is its SLUID; the job id must be found elsewhere.
_SLUID = re.compile(
    r"/(?:[^/]+_)?slurmstepd\.scope/(?P<sluid>s[0-9A-Z]{13})(?:/step_(?P<step>[^/]+))?"
)
_STEPD_CHILD = re.compile(r"slurmstepd\.scope/(?P<child>[^/]+)")
_STEPD_OWN = frozenset({"system", "slurmstepd", "gpu_probe"})
_POD = re.compile(
    r"kubepods[^/]*(?:/.*?)?[/-]pod(?P<uid>[0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_]"
    r"[0-9a-f]{4}[-_][0-9a-f]{12}|[0-9a-f]{32})"
)
_CONTAINER = re.compile(
    r"(?:^|[/:])(?:(?P<runtime>docker|crio|cri-containerd|libpod|containerd)[-/:])?"
    r"(?P<id>[0-9a-f]{64})(?:\.scope)?(?=/|$)"
)
# lxc keeps its own names instead of hashes.
_LXC = re.compile(r"(?:^|/)lxc(?:\.payload)?[./](?P<id>[^/]+)")


@dataclass(frozen=True, slots=True)
class Membership:
    """What a path says: exactly one of job, sluid, pod_uid and container is the outermost owner.

    ``strange``: a child of Slurm's scope in a form that is not known; worth an alarm, for the next
    version of Slurm may have renamed what this program looks for.
    """

    job_id: str | None = None
    sluid: str | None = None
    step: str | None = None
    pod_uid: str | None = None
    container_id: str | None = None
    strange: str | None = None


def membership(path: str) -> Membership:
    """The owner named in a control group's path; Slurm first, then pods, then containers."""
    container = _CONTAINER.search(path) or _LXC.search(path)
    container_id = None if container is None else container["id"]
    if found := _SLURM.search(path):
        return Membership(job_id=found["job"], step=found["step"], container_id=container_id)
    if found := _SLUID.search(path):
        return Membership(sluid=found["sluid"], step=found["step"], container_id=container_id)
    if found := _POD.search(path):
        return Membership(pod_uid=dashed(found["uid"]), container_id=container_id)
    strange = _STEPD_CHILD.search(path)
    if strange is not None and strange["child"] not in _STEPD_OWN:
        return Membership(strange=strange["child"], container_id=container_id)
    return Membership(container_id=container_id)


def dashed(uid: str) -> str:
    """A pod's UID in its usual form; mirror pods have 32 digits without dashes and keep them."""
    return uid.replace("_", "-")


def owner_path(path: str) -> str | None:
    """The control group of the whole owner: a job's with all its steps, a pod's, a container's.

    None for a path without an owner of its own: a session is no job.
    """
    for pattern in (_SLURM, _SLUID, _POD, _CONTAINER):
        if found := pattern.search(path):
            # A job's directory ends before its steps; the others end with the owner's own name.
            end = found.start("step") - len("/step_") if _has_step(found) else found.end()
            rest = path[end:].partition("/")[0]
            return path[:end] + rest
    return None


def _has_step(found: re.Match[str]) -> bool:
    return found.groupdict().get("step") is not None
