"""Machines GPU by GPU: who holds which, in whole, in slices or in shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from scheduler_advisor.engine.cluster import Cluster
from scheduler_advisor.engine.parts.mig import WHOLE, Profile, profiles_of, start_for


@dataclass(slots=True)
class Cut:
    """One MIG instance; job None = it stands idle."""

    profile: Profile
    start: int
    job: int | None


@dataclass(slots=True)
class Gpu:
    """One GPU: held by one job, cut into slices, shared, or free."""

    whole: int | None = None
    shares: list[tuple[int, int]] = field(default_factory=list)  # (job, thousandths) by task
    cuts: list[Cut] = field(default_factory=list)
    latency: bool = False  # what the sharers are

    @property
    def free(self) -> bool:
        return self.whole is None and not self.shares and not self.busy

    @property
    def busy(self) -> list[Cut]:
        """Slices that a job runs on."""
        return [cut for cut in self.cuts if cut.job is not None]

    @property
    def left(self) -> int:
        """Thousandths that shares have not taken."""
        return WHOLE - sum(milli for _, milli in self.shares)


@dataclass(slots=True)
class Machine:
    """One node. `down` counts outages that hold it. `island`: GPUs of one NVLink island, where
    they are taken island by island; 0: in their order."""

    gpus: list[Gpu]
    cpu: int
    mem: int
    profiles: tuple[Profile, ...]
    island: int = 0
    tasks: int = 0
    down: int = 0

    @property
    def whole(self) -> int:
        return sum(gpu.free for gpu in self.gpus)

    @property
    def in_use(self) -> bool:
        return any(not gpu.free for gpu in self.gpus)


@dataclass(frozen=True, slots=True)
class Piece:
    """What one task holds: GPUs of a node; of the one GPU of a share, `milli` or the slice that
    begins at `start`. `recut`: some GPU's slices had to be made anew for it."""

    node: int
    gpus: tuple[int, ...]
    cpu: int
    mem: int
    milli: int = 0
    start: int = -1
    recut: bool = False


Floor = list[Machine]


def empty_floor(cluster: Cluster, islands: Sequence[int] | None = None) -> Floor:
    """All machines with nothing on them; `islands` by node."""
    return [
        Machine(
            [Gpu() for _ in range(int(cluster.gpus[node]))],
            int(cluster.cpu_milli[node]),
            int(cluster.mem_mib[node]),
            profiles_of(cluster.gpu_model[node]),
            0 if islands is None else islands[node],
        )
        for node in range(len(cluster))
    ]


def take_whole(floor: Floor, node: int, job: int, count: int, cpu: int, mem: int) -> Piece:
    """The lowest free GPUs, those without slices first; or island by island."""
    machine = floor[node]
    free = [at for at, gpu in enumerate(machine.gpus) if gpu.free]
    chosen = sorted(free, key=lambda at: (bool(machine.gpus[at].cuts), at))[:count]
    if machine.island:
        chosen = by_island(free, machine.island, count)
    recut = False
    for at in chosen:
        recut = recut or bool(machine.gpus[at].cuts)
        machine.gpus[at].cuts = []
        machine.gpus[at].whole = job
    _hold(machine, cpu, mem, 1)
    return Piece(node, tuple(sorted(chosen)), cpu, mem, recut=recut)


def by_island(free: Sequence[int], size: int, count: int) -> list[int]:
    """The island with the least free GPUs that has enough of them, else the emptiest islands in
    turn; ties: the lowest."""
    islands: dict[int, list[int]] = {}
    for gpu in free:
        islands.setdefault(gpu // size, []).append(gpu)
    chosen: list[int] = []
    while len(chosen) < count and islands:
        left = count - len(chosen)
        enough = [one for one, gpus in islands.items() if len(gpus) >= left]
        if enough:
            one = min(enough, key=lambda at: (len(islands[at]), at))
        else:
            one = min(islands, key=lambda at: (-len(islands[at]), at))
        chosen += islands.pop(one)[:left]
    return chosen


def take_share(
    floor: Floor, node: int, gpu: int, job: int, milli: int, cpu: int, mem: int, latency: bool
) -> Piece:
    """A share of one GPU; slices that stand idle on it go."""
    one = floor[node].gpus[gpu]
    recut = bool(one.cuts)
    one.cuts = []
    one.shares.append((job, milli))
    one.latency = latency
    _hold(floor[node], cpu, mem, 1)
    return Piece(node, (gpu,), cpu, mem, milli=milli, recut=recut)


def take_slice(
    floor: Floor, node: int, gpu: int, job: int, wanted: Profile, cpu: int, mem: int
) -> Piece | None:
    """An idle slice of that profile; else a new one, beside the idle ones or in their place.
    None: running slices leave no room."""
    machine = floor[node]
    one = machine.gpus[gpu]
    for cut in one.cuts:
        if cut.job is None and cut.profile == wanted:
            cut.job = job
            _hold(machine, cpu, mem, 1)
            return Piece(node, (gpu,), cpu, mem, start=cut.start)
    for standing in (one.cuts, one.busy):
        taken = sum(cut.profile.bits(cut.start) for cut in standing)
        start = start_for(machine.profiles, taken, wanted)
        if start is not None:
            bits = wanted.bits(start)
            one.cuts = [cut for cut in one.cuts if not bits & cut.profile.bits(cut.start)]
            one.cuts.append(Cut(wanted, start, job))
            _hold(machine, cpu, mem, 1)
            return Piece(node, (gpu,), cpu, mem, start=start, recut=True)
    return None


def release(floor: Floor, piece: Piece, job: int) -> None:
    """The task leaves; its slice stands idle from now."""
    machine = floor[piece.node]
    for at in piece.gpus:
        gpu = machine.gpus[at]
        if piece.start >= 0:
            for cut in gpu.cuts:
                if cut.job == job and cut.start == piece.start:
                    cut.job = None
        elif piece.milli:
            gpu.shares.remove((job, piece.milli))
        else:
            gpu.whole = None
    _hold(machine, piece.cpu, piece.mem, -1)


def _hold(machine: Machine, cpu: int, mem: int, sign: int) -> None:
    machine.cpu -= sign * cpu
    machine.mem -= sign * mem
    machine.tasks += sign


Marks = list[tuple[Gpu, list[Cut], list[int | None]]]


def marks_of(floor: Floor) -> Marks:
    """Where slices lie and whose they are; to place in thought cuts some and clears others."""
    return [
        (gpu, gpu.cuts, [cut.job for cut in gpu.cuts])
        for machine in floor
        for gpu in machine.gpus
        if machine.profiles
    ]


def marks_under(floor: Floor, marks: Marks, pieces: Sequence[Piece]) -> Marks:
    """Those of the GPUs that the pieces take."""
    taken = [floor[piece.node].gpus[at] for piece in pieces for at in piece.gpus]
    return [mark for mark in marks if any(mark[0] is gpu for gpu in taken)]


def unmark(marks: Marks) -> None:
    """Slices lie again as they did; nothing that was placed since may still be there."""
    for gpu, cuts, jobs in marks:
        gpu.cuts = cuts
        for cut, job in zip(cuts, jobs, strict=True):
            cut.job = job


def retake(floor: Floor, piece: Piece, job: int, latency: bool = False) -> None:
    """Whole GPUs, or a share of one, that the job gave back a moment ago are its own again."""
    for at in piece.gpus:
        gpu = floor[piece.node].gpus[at]
        if piece.milli:
            gpu.shares.append((job, piece.milli))
            gpu.latency = latency
        else:
            gpu.whole = job
    _hold(floor[piece.node], piece.cpu, piece.mem, 1)
