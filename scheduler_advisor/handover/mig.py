"""A MIG layout as commands of the driver and as a configuration of mig-parted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import yaml

from scheduler_advisor.engine.parts.mig import Profile, profiles_of
from scheduler_advisor.handover.errors import HandoverError
from scheduler_advisor.handover.steps import Run

CONFIG = "unstrand"
FILE = "mig-parted.yaml"


def checked(gpu_model: str, names: Sequence[str]) -> tuple[str, ...]:
    """The profiles from the largest; refused where the hardware cannot hold them together."""
    known = {profile.name: profile for profile in profiles_of(gpu_model)}
    if not known:
        raise HandoverError(f"MIG: {gpu_model} has no MIG; leave it out")
    for name in names:
        if name not in known:
            listed = ", ".join(sorted(known))
            raise HandoverError(f"MIG: {gpu_model} has no profile {name}; it has {listed}")
    wanted = sorted((known[name] for name in names), key=lambda one: (-one.slices, -one.compute))
    if wanted and (sum(p.compute for p in wanted) > wanted[0].of_compute or not _fit(wanted, 0)):
        raise HandoverError(
            f"MIG: {', '.join(names)} do not fit together on one {gpu_model}; take fewer or smaller"
        )
    return tuple(profile.name for profile in wanted)


def _fit(wanted: Sequence[Profile], taken: int) -> bool:
    if not wanted:
        return True
    first, *rest = wanted
    return any(
        not first.bits(start) & taken and _fit(rest, taken | first.bits(start))
        for start in first.starts
    )


def driver_runs(where: str, before: Sequence[str], after: Sequence[str]) -> list[Run]:
    """`nvidia-smi mig` on every GPU of the nodes ``where``, which must be idle; none: no MIG."""
    return [Run(_cut(after), _cut(before), where)] if list(before) != list(after) else []


def _cut(profiles: Sequence[str]) -> str:
    if not profiles:
        return "nvidia-smi mig -dci; nvidia-smi mig -dgi; nvidia-smi -mig 0"
    clear = "nvidia-smi mig -dci; nvidia-smi mig -dgi"
    return f"nvidia-smi -mig 1; {clear}; nvidia-smi mig -cgi {','.join(profiles)} -C"


def parted(profiles: Sequence[str]) -> str:
    """A configuration of mig-parted (and of the GPU operator's MIG manager) for all devices."""
    device: dict[str, object] = {"devices": "all", "mig-enabled": bool(profiles)}
    device["mig-devices"] = dict(Counter(profiles))
    body = {"version": "v1", "mig-configs": {CONFIG: [device]}}
    return str(yaml.safe_dump(body, sort_keys=False))
