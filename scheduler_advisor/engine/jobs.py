"""The jobs of a history as a struct of arrays, ordered by submit time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.engine.errors import JobsError
from scheduler_advisor.engine.hashes import digest

Ints = NDArray[np.int64]
MAX_JOBS = 1 << 24  # an event packs a job's index into 24 bits

# Column -> what a job has that does not say. `limit` and `eligible` default to other columns.
DEFAULTS: Mapping[str, int] = {
    "tasks": 0,
    "gpus_per_task": 0,
    "rest_gpus": 0,
    "gpu_milli": 0,
    "cpu_milli": 0,
    "mem_mib": 0,
    "gang": 1,
    "distinct_nodes": 0,
    "exclusive": 0,
    "priority": 0,
    "nice": 0,
    "preemptible": 0,
    "checkpoint_every": 0,
    "checkpoint_cost": 0,
    "restore_cost": 0,
    "min_tasks": 0,
    "max_tasks": 0,
    "comm_milli": 0,
    "latency_sensitive": 0,
    "service": 0,
}
NAMED = (
    "team",
    "user",
    "account",
    "qos",
    "gpu_models",
    "partitions",
    "features",
    "reservation",
    "topology",
    "stood_on",
)


@dataclass(frozen=True, slots=True)
class Named:
    """A column of names, stored as codes into a table; the empty name means "not said"."""

    codes: Ints
    names: tuple[str, ...]

    @classmethod
    def of(cls, values: Sequence[str] | Named | None, size: int) -> Named:
        if isinstance(values, Named):
            return values
        if values is None:
            return cls(np.zeros(size, np.int64), ("",))
        names, codes = np.unique(np.asarray(values, dtype=str), return_inverse=True)
        return cls(codes.astype(np.int64).reshape(-1), tuple(str(name) for name in names))

    def take(self, order: NDArray[np.intp]) -> Named:
        return Named(self.codes[order], self.names)

    def __getitem__(self, job: int) -> str:
        return self.names[int(self.codes[job])]


@dataclass(frozen=True, slots=True)
class Jobs:
    """One row per job, in order of submit time (ties in the order given).

    Times are whole seconds from an origin of the caller's choice. `run` is the seconds of service
    on the reference placement, `limit` what the scheduler believes (never below `run`). A job is
    `tasks` tasks of `gpus_per_task` GPUs, and one more of `rest_gpus` if that is not 0; `tasks` 0
    means that the shape follows from `gpus` and the nodes. `gpu_milli` above 0: each task takes
    that many thousandths of one GPU instead. `cpu_milli` and `mem_mib` are per task (the rest
    takes its share, rounded up). `gpu_models`, `partitions` and `features` hold alternatives
    separated by "|" (a feature list is a conjunction, separated by "&"). A job with `stood_on`
    starts there first, a node for each task, where they have room; the drivers of a plan, of gangs
    that start one by one, and the plain one place it as any other.
    """

    job_id: tuple[str, ...] | NDArray[np.str_]
    submit: Ints
    eligible: Ints
    run: Ints
    limit: Ints
    gpus: Ints
    tasks: Ints
    gpus_per_task: Ints
    rest_gpus: Ints
    gpu_milli: Ints
    cpu_milli: Ints
    mem_mib: Ints
    gang: Ints
    distinct_nodes: Ints
    exclusive: Ints
    priority: Ints
    nice: Ints
    preemptible: Ints
    checkpoint_every: Ints
    checkpoint_cost: Ints
    restore_cost: Ints
    min_tasks: Ints
    max_tasks: Ints
    comm_milli: Ints
    latency_sensitive: Ints
    service: Ints  # 1: one replica of a service, wanted until submit + run, whenever it starts
    team: Named
    user: Named
    account: Named
    qos: Named
    gpu_models: Named
    partitions: Named
    features: Named
    reservation: Named
    topology: Named
    stood_on: Named  # "|"-separated, one for each task: where it ran when the replay begins
    parent_of: Ints  # pairs (child, parent): the child becomes eligible when the parent has ended
    raised_limits: int = 0  # how many limits lay below the run time and were raised to it

    def __len__(self) -> int:
        return len(self.submit)

    @classmethod
    def build(cls, **columns: Any) -> Jobs:
        """Jobs from columns in any order; only `submit`, `run` and `gpus` are required."""
        return _build(cls, columns)

    def take(self, order: NDArray[np.intp]) -> Jobs:
        """The jobs at `order`; dependencies on jobs that are left out count as met."""
        changes: dict[str, Any] = {"job_id": _ids(self.job_id)[order]}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Named):
                changes[field.name] = value.take(order)
            elif field.name not in ("job_id", "parent_of", "raised_limits"):
                changes[field.name] = value[order]
        changes["parent_of"] = _moved(self.parent_of, order, len(self))
        return replace(self, **changes)

    def changed(self, **columns: Any) -> Jobs:
        """The same jobs with some columns replaced, checked and put in order again."""
        kept = {name: getattr(self, name) for name in ("job_id", "submit", "eligible", "run")}
        kept |= {name: getattr(self, name) for name in ("limit", "gpus", *DEFAULTS)}
        kept |= {name: getattr(self, name) for name in NAMED}
        return Jobs.build(**(kept | {"parent_of": self.parent_of} | columns))

    @property
    def hash(self) -> str:
        """Equal for equal workloads, whatever made them."""
        return digest(*(getattr(self, field.name) for field in fields(self)[:-1]))


def _ids(ids: tuple[str, ...] | NDArray[np.str_]) -> NDArray[np.str_]:
    return np.asarray(ids, dtype=str)


def _build(cls: type[Jobs], given: Mapping[str, Any]) -> Jobs:
    known = {field.name for field in fields(cls)} - {"raised_limits"}
    if unknown := sorted(set(given) - known):
        raise JobsError(f"jobs: unknown columns {', '.join(unknown)}; known: {sorted(known)}")
    if missing := [name for name in ("submit", "run", "gpus") if name not in given]:
        raise JobsError(f"jobs: column {missing[0]} is missing")
    size = len(given["submit"])
    if size > MAX_JOBS:
        raise JobsError(f"jobs: {size} rows, at most {MAX_JOBS}: cut the window")
    ints = {name: _ints(given, name, size) for name in ("submit", "run", "gpus")}
    ints["eligible"] = np.maximum(_ints(given, "eligible", size, ints["submit"]), ints["submit"])
    limit = _ints(given, "limit", size, ints["run"])
    ints["limit"] = np.maximum(limit, ints["run"])
    for name, default in DEFAULTS.items():
        ints[name] = _ints(given, name, size, np.full(size, default, np.int64))
    _check(ints)
    ids = given.get("job_id")
    jobs = cls(
        job_id=_ids(ids) if ids is not None else np.arange(size).astype(str),
        **ints,  # type: ignore[arg-type]
        **{name: Named.of(given.get(name), size) for name in NAMED},  # type: ignore[arg-type]
        parent_of=np.asarray(given.get("parent_of", ()), np.int64).reshape(-1, 2),
        raised_limits=int(np.count_nonzero(limit < ints["run"])),
    )
    if np.all(jobs.submit[1:] >= jobs.submit[:-1]):
        return jobs
    return jobs.take(np.argsort(jobs.submit, kind="stable"))


def _ints(given: Mapping[str, Any], name: str, size: int, default: Ints | None = None) -> Ints:
    if name not in given:
        if default is None:
            raise JobsError(f"jobs: column {name} is missing")
        return default
    values = np.asarray(given[name])
    if values.shape != (size,):
        raise JobsError(f"jobs: column {name} has shape {values.shape}, not ({size},)")
    if values.dtype.kind == "f" and not np.array_equal(values, np.floor(values)):
        raise JobsError(f"jobs: column {name} holds fractions; round half up while reading")
    return values.astype(np.int64)


def _check(columns: Mapping[str, Ints]) -> None:
    for name, values in columns.items():
        if (
            name not in ("priority", "nice", "submit", "eligible")
            and len(values)
            and values.min() < 0
        ):
            job = int(np.argmin(values))
            raise JobsError(f"jobs: {name} is {values[job]} in row {job}; must be 0 or more")
    if len(columns["gpu_milli"]) and columns["gpu_milli"].max() > 1000:
        raise JobsError("jobs: gpu_milli above 1000; ask for whole GPUs per task instead")


def _moved(pairs: Ints, order: NDArray[np.intp], size: int) -> Ints:
    place = np.full(size, -1, np.int64)
    place[order] = np.arange(len(order))
    moved = place[pairs]
    return moved[(moved >= 0).all(axis=1)] if len(moved) else moved
