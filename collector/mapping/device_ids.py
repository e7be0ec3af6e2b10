"""The forms in which Kubernetes' device plugins name a GPU, a MIG instance or a replica of one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_GKE = re.compile(r"nvidia(?P<minor>\d+)(?:/gi(?P<gi>\d+))?(?:/vgpu(?P<replica>\d+))?")
_DRA = re.compile(r"gpu-(?P<minor>\d+)(?:-mig-\d+-(?P<start>\d+)-\d+)?")
_OLD_MIG = re.compile(r"MIG-(?P<gpu>GPU-[^/]+)/(?P<gi>\d+)/(?P<ci>\d+)")


@dataclass(frozen=True, slots=True)
class Places:
    """What this node's devices are called: the lookups that an id may need."""

    gpus: frozenset[str]
    by_mig: Mapping[str, str]  # MIG UUID -> GPU UUID
    by_instance: Mapping[tuple[str, int], str]  # (GPU UUID, GPU instance) -> MIG UUID
    by_minor: Mapping[int, str]  # GKE's nvidiaN and DRA's gpu-N are the device file's number
    by_placement: Mapping[tuple[str, int], str] = field(default_factory=dict)  # (GPU, start) -> MIG


def resolve(device_id: str, places: Places) -> tuple[str, str | None] | None:
    """(GPU UUID, MIG UUID or None) of a device id; None for one that is not on this node.

    A claim's slice (DRA) is found by where it begins on its board, which drivers tell only to the
    privileged; without that it is not found, and said so.

    Replicas (``id::n``, GKE's ``/vgpuN``) resolve to what they are a part of.
    """
    plain = device_id.partition("::")[0]
    if plain in places.gpus:
        return plain, None
    if plain in places.by_mig:
        return places.by_mig[plain], plain
    if found := _OLD_MIG.fullmatch(plain):
        return _instance(found["gpu"], int(found["gi"]), places)
    return _numbered(plain, places)


def _numbered(plain: str, places: Places) -> tuple[str, str | None] | None:
    """Forms that name a GPU by the number of its device file."""
    found = _GKE.fullmatch(plain) or _DRA.fullmatch(plain)
    gpu = None if found is None else places.by_minor.get(int(found["minor"]))
    if found is None or gpu is None:
        return None
    parts = found.groupdict()
    if parts.get("gi") is not None:
        return _instance(gpu, int(parts["gi"]), places)
    if parts.get("start") is not None:
        mig = places.by_placement.get((gpu, int(parts["start"])))
        return None if mig is None else (gpu, mig)
    return gpu, None


def _instance(gpu: str, gpu_instance: int, places: Places) -> tuple[str, str] | None:
    mig = places.by_instance.get((gpu, gpu_instance))
    return None if mig is None else (gpu, mig)
