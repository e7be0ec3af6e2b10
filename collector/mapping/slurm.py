"""Which Slurm job holds which GPU, without trusting an index.

Two sources name devices by UUID: the map that the prolog writes, and the environment of a job's
processes (from Slurm 25.11 CUDA_VISIBLE_DEVICES has UUIDs). A number there may follow gres.conf,
the minor number, or start from zero inside the job's device group, so a number names nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from collector.mapping.attribution import Holding

# The map of this project's prolog; /run/gpustat is that of jobstats, with the same form.
MAP_FOLDERS = (Path("/run/unstrand/gpus"), Path("/run/gpustat"))
_UUID = re.compile(r"(?:GPU|MIG)-[0-9A-Za-z/-]+")
_NUMBERED = re.compile(r"\d+(?:\.\d+)?")


class PrologMap:
    """Files named by the UUID of a GPU or MIG instance, one ``jobid [uid]`` per line."""

    def __init__(self, folders: Iterable[Path] = MAP_FOLDERS) -> None:
        self._folders = tuple(folders)

    def read(self) -> tuple[dict[str, list[str]], list[str]]:
        """UUID -> job ids, and remarks on files that name nothing."""
        jobs: dict[str, list[str]] = {}
        remarks: list[str] = []
        for folder in self._folders:
            try:
                files = sorted(folder.iterdir())
            except OSError:
                continue
            numbered = [file.name for file in files if _NUMBERED.fullmatch(file.name)]
            named = [file for file in files if _UUID.fullmatch(file.name)]
            for file in named:
                jobs.setdefault(file.name, []).extend(_job_ids(file))
            if numbered and not named:
                remarks.append(
                    f"{folder} names GPUs by number ({', '.join(numbered[:3])}): a number does not "
                    "identify a GPU, let the prolog write UUIDs"
                )
        return jobs, remarks


def visible_uuids(environment: Mapping[str, str]) -> list[str]:
    """UUIDs in the variables that Slurm sets; numbers are left out."""
    for name in ("SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "CUDA_VISIBLE_DEVICES"):
        found = [part.strip() for part in environment.get(name, "").split(",")]
        uuids = [part for part in found if _UUID.fullmatch(part)]
        if uuids:
            return uuids
    return []


def holdings(jobs: Mapping[str, list[str]], places: Mapping[str, str]) -> list[Holding]:
    """Holdings of the mapped jobs; ``places``: MIG UUID -> GPU UUID, and each GPU to itself."""
    found = []
    for uuid, ids in jobs.items():
        gpu_uuid = places.get(uuid)
        if gpu_uuid is None:
            continue  # a GPU of another boot
        mig_uuid = None if uuid == gpu_uuid else uuid
        unique = list(dict.fromkeys(ids))
        found += [Holding(f"slurm:{job}", gpu_uuid, mig_uuid, 1, len(unique)) for job in unique]
    return found


def _job_ids(file: Path) -> list[str]:
    try:
        lines = file.read_text(errors="replace").splitlines()
    except OSError:
        return []  # the epilog was faster
    return [words[0] for line in lines if (words := line.split()) and words[0].isdigit()]
