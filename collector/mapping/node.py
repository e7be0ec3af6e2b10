"""Everything this node knows of who holds and who uses its GPUs."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable

from collector.mapping import kubernetes, slurm
from collector.mapping.attribution import Attribution, Holding, Place, ProcessOwner
from collector.mapping.cgroup import owner_path
from collector.mapping.containers import ContainerNames
from collector.mapping.device_ids import Places
from collector.mapping.kubernetes import Kubelet, PodFolders
from collector.mapping.owners import Known, Owners
from collector.mapping.process import ProcReader
from collector.mapping.slurm import PrologMap
from collector.telemetry.device import Device
from collector.telemetry.tick import Tick

# A pod list older than this says nothing about now.
_KEEP_S = 300.0


class NodeMapper:
    """Joins both ways at each tick. A source that fails costs what it alone knows."""

    def __init__(
        self,
        *,
        proc: ProcReader | None = None,
        prolog: PrologMap | None = None,
        kubelet: Kubelet | None = None,
        pods: PodFolders | None = None,
        containers: ContainerNames | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._proc = proc or ProcReader()
        self._prolog = prolog or PrologMap()
        self._kubelet = kubelet or Kubelet()
        self._pods = pods or PodFolders()
        self._owners = Owners(self._proc, self._pods.name_of, containers)
        self._monotonic = monotonic
        self._last_pods: tuple[float, list[Holding]] = (0.0, [])
        self._placed: tuple[list[Device], Places] = ([], places_of(()))

    def attribute(self, tick: Tick) -> Attribution:
        """See `Mapper.attribute`."""
        errors: dict[str, str] = {}
        has_pods = self._kubelet.present()
        if has_pods:
            self._pods.refresh()
        known = self._owners.of(u.pid for d in tick.devices for u in d.processes or ())
        places = self._places(tick.inventory)
        held, age_s = self._from_kubelet(places, errors) if has_pods else ([], 0.0)
        held += self._from_slurm(places, known, errors)
        held += active_holdings(tick, known, {(h.gpu_uuid, h.mig_uuid) for h in held})
        self._remark(known, errors)
        return Attribution(
            holdings=tuple(held),
            owners={pid: one.owner for pid, one in known.items()},
            errors=errors,
            age_s=age_s,
            unattributed=self._owners.missing,
            cgroups=_cgroups(known.values()),
        )

    def _places(self, inventory: list[Device]) -> Places:
        """Made anew only when the inventory is: between changes every tick has the same list."""
        if self._placed[0] is not inventory:
            self._placed = (inventory, places_of(inventory))
        return self._placed[1]

    def _from_kubelet(self, places: Places, errors: dict[str, str]) -> tuple[list[Holding], float]:
        now = self._monotonic()
        try:
            devices, advertised = self._kubelet.read()
        except OSError as error:
            errors["kubernetes"] = str(error)
            at, last = self._last_pods
            age_s = max(now - at, 0.001)
            return (list(last) if age_s < _KEEP_S else []), age_s
        held, unknown = kubernetes.holdings(devices, advertised, places, self._pods.ended)
        if unknown:
            errors["kubernetes"] = f"device ids that name no GPU of this node: {unknown[:3]}"
        self._last_pods = (now, list(held))
        return held, 0.0

    def _from_slurm(
        self, places: Places, known: dict[int, Known], errors: dict[str, str]
    ) -> list[Holding]:
        jobs, remarks = self._prolog.read()
        if remarks:
            errors["slurm"] = "; ".join(remarks)
        for one in known.values():
            key = one.owner.key or ""
            if key.startswith("slurm:"):
                job = key.removeprefix("slurm:")
                for uuid in slurm.visible_uuids(self._proc.environment(one.process.pid)):
                    if job not in jobs.setdefault(uuid, []):
                        jobs[uuid].append(job)
        lookup = {**{gpu: gpu for gpu in places.gpus}, **places.by_mig}
        return slurm.holdings(jobs, lookup)

    def _remark(self, known: dict[int, Known], errors: dict[str, str]) -> None:
        if self._owners.missing and not known:
            errors["processes"] = (
                "none of the driver's process ids is in /proc: the agent needs the host's process "
                "ids (hostPID: true, or --pid=host)"
            )
        if self._owners.strange:
            names = ", ".join(sorted(self._owners.strange)[:3])
            errors["slurm_cgroup"] = (
                f"unknown children of slurmstepd.scope ({names}): this Slurm may be newer than "
                "this agent knows"
            )


def active_holdings(tick: Tick, known: dict[int, Known], scheduled: set[Place]) -> list[Holding]:
    """Holders by activity, of devices that no scheduler has given to anybody.

    Under MPS each client's part of the SMs weighs its share; otherwise all weigh the same.
    """
    weights: dict[Place, dict[str, int]] = defaultdict(dict)
    users: dict[str, ProcessOwner] = {}
    for device in tick.devices:
        for use in device.processes or ():
            one = known.get(use.pid)
            place = (device.gpu_uuid, use.mig_uuid or device.mig_uuid)
            if one is None or one.is_mps_daemon or one.owner.key is None or place in scheduled:
                continue
            users[one.owner.key] = one.owner
            before = weights[place].get(one.owner.key, 0)
            weights[place][one.owner.key] = max(before, one.mps_percent or 0)
    return [h for place, of in weights.items() for h in _shares(place, of, users)]


def _shares(
    place: Place, weights: dict[str, int], users: dict[str, ProcessOwner]
) -> Iterable[Holding]:
    limited = all(weights.values())
    whole = max(100, sum(weights.values())) if limited else len(weights)
    for key, weight in sorted(weights.items()):
        yield Holding(
            key, *place, weight if limited else 1, whole,
            user_name=users[key].user_name, account=users[key].user_name, name=users[key].name,
        )  # fmt: skip


def _cgroups(known: Iterable[Known]) -> dict[str, str]:
    paths = ((one.owner.key, owner_path(one.process.cgroup)) for one in known)
    return {key: path for key, path in paths if key is not None and path is not None}


def places_of(inventory: Iterable[Device]) -> Places:
    """The lookups that device ids need, from the inventory of this tick."""
    devices = list(inventory)
    return Places(
        gpus=frozenset(d.gpu_uuid for d in devices),
        by_mig={m.mig_uuid: d.gpu_uuid for d in devices for m in d.mig},
        by_instance={
            (d.gpu_uuid, m.gpu_instance_id): m.mig_uuid
            for d in devices
            for m in reversed(d.mig)
            if m.gpu_instance_id is not None
        },
        by_placement={
            (d.gpu_uuid, m.placement_start): m.mig_uuid
            for d in devices
            for m in reversed(d.mig)
            if m.placement_start is not None
        },
        by_minor={d.minor_number: d.gpu_uuid for d in devices if d.minor_number is not None},
    )
