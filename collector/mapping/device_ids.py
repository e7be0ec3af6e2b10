"""The forms in which Kubernetes' device plugins name a GPU, a MIG instance or a replica of one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_GKE = re.compile(r"nvidia(?P<minor>\d+)(?:/gi(?P<gi>\d+))?(?:/vgpu(?P<replica>\d+))?")
_OLD_MIG = re.compile(r"MIG-(?P<gpu>GPU-[^/]+)/(?P<gi>\d+)/(?P<ci>\d+)")


@dataclass(frozen=True, slots=True)
class Places:
    """What this node's devices are called: the lookups that an id may need."""

    gpus: frozenset[str]
    by_mig: Mapping[str, str]  # MIG UUID -> GPU UUID
    by_instance: Mapping[tuple[str, int], str]  # (GPU UUID, GPU instance) -> MIG UUID
    by_minor: Mapping[int, str]  # GKE's nvidiaN is the device file, so the minor number


def resolve(device_id: str, places: Places) -> tuple[str, str | None] | None:
    """(GPU UUID, MIG UUID or None) of a device id; None for one that is not on this node.

    Replicas (``id::n``, GKE's ``/vgpuN``) resolve to what they are a part of.
    """
    plain = device_id.partition("::")[0]
    if plain in places.gpus:
        return plain, None
    if plain in places.by_mig:
        return places.by_mig[plain], plain
    if found := _OLD_MIG.fullmatch(plain):
        return _instance(found["gpu"], int(found["gi"]), places)
    if found := _GKE.fullmatch(plain):
        gpu = places.by_minor.get(int(found["minor"]))
        if gpu is None or found["gi"] is None:
            return None if gpu is None else (gpu, None)
        return _instance(gpu, int(found["gi"]), places)
    return None


def _instance(gpu: str, gpu_instance: int, places: Places) -> tuple[str, str] | None:
    mig = places.by_instance.get((gpu, gpu_instance))
    return None if mig is None else (gpu, mig)
