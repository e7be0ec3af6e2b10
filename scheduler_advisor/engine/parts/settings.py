"""The keys topology.*, defrag.*, sharing.* and elastic.* of a policy."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any, TypeVar

from scheduler_advisor.engine.errors import PolicyError
from scheduler_advisor.engine.key_value import read_value
from scheduler_advisor.engine.parts.levels import Level

DAY_HOURS = 24


class Binding(StrEnum):
    """Whether a gang that does not fit into one domain waits for one, or takes what there is."""

    PREFERRED = "preferred"
    REQUIRED = "required"


class Defrag(StrEnum):
    """When running jobs are moved together; `pending`: when a job waits for want of a place."""

    NONE = "none"
    HOURS = "hours"
    THRESHOLD = "threshold"
    PENDING = "pending"


class Sharing(StrEnum):
    """What a job that asks for a part of a GPU gets. `asked`: that part, without interference, as
    the schedulers that count fractions believe."""

    ASKED = "asked"
    NONE = "none"
    MIG = "mig"
    MPS = "mps"
    TIME_SLICE = "time-slice"


class Elastic(StrEnum):
    """Whether a job with min and max tasks is resized while it runs."""

    FIXED = "fixed"
    RESIZE = "resize"


class _Checked:
    """Refuses negative numbers in any field of a part."""

    __slots__ = ()
    PART = ""

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if isinstance(value, int | float) and not isinstance(value, bool) and value < 0:
                raise PolicyError(f"policy: {self.PART}.{field.name} is {value}; must be 0 or more")


@dataclass(frozen=True, slots=True)
class TopologyPart(_Checked):
    """Placement by the network, and what communication over it costs.

    `level`: all tasks of a gang in one domain of this level; empty: no such rule. A job's own
    `topology` column comes before it. `binding` preferred: one domain if one has room now, else
    any. `slowdown`: run times stretch by the all-reduce model, for every placement rule.
    `message_mib`: size of one all-reduce. `comm_milli`: thousandths of run time in
    communication per doubling of the GPUs, of jobs that do not say. `oversubscription`: hosts'
    bandwidth over the uplinks' of a leaf. `*_gb_s` replace the table's bandwidths (0: the
    table's)."""

    level: str = ""
    binding: Binding = Binding.PREFERRED
    slowdown: bool = False
    message_mib: int = 1024
    comm_milli: int = 50
    oversubscription: float = 1.0
    island_gb_s: float = 0.0
    node_gb_s: float = 0.0
    leaf_gb_s: float = 0.0
    spine_gb_s: float = 0.0
    core_gb_s: float = 0.0

    PART = "topology"

    def __post_init__(self) -> None:
        _Checked.__post_init__(self)
        if self.level and self.level not in tuple(Level):
            raise PolicyError(
                f"policy: topology.level = {self.level} is not one of {', '.join(Level)}"
            )
        if self.oversubscription < 1:
            raise PolicyError(
                f"policy: topology.oversubscription is {self.oversubscription}; must be 1 or more"
            )


@dataclass(frozen=True, slots=True)
class DefragPart(_Checked):
    """Moving running jobs together. `hours`: hours of the day, such as "2|14". `threshold`: the
    share of idle GPUs that lie on nodes in use, above which a pass begins. At most `moves` per
    pass, passes at least `every_s` apart, and only where GPU-seconds won on a node kept whole
    for `horizon_s` outlast the checkpoint and the restore, `min_gain` times. `pending`: at most
    `moves` for one waiting job, none of a job that began less than `every_s` ago."""

    kind: Defrag = Defrag.NONE
    hours: str = ""
    threshold: float = 0.5
    moves: int = 4
    every_s: int = 3600
    horizon_s: int = 14400
    min_gain: float = 1.0

    PART = "defrag"

    def __post_init__(self) -> None:
        _Checked.__post_init__(self)
        self.hours_of_day()

    def hours_of_day(self) -> tuple[int, ...]:
        """The hours at which a pass is due, ascending."""
        try:
            hours = sorted({int(text) for text in self.hours.split("|") if text})
        except ValueError:
            hours = [-1]
        if any(not 0 <= hour < DAY_HOURS for hour in hours):
            raise PolicyError(f"policy: defrag.hours = {self.hours}; write hours 0-23 as 2|14")
        return tuple(hours)


@dataclass(frozen=True, slots=True)
class SharingPart(_Checked):
    """Parts of GPUs. `reconfigure_s`: a GPU rests so long when its MIG slices are cut anew.
    `crowding_milli`: cache and scheduling losses of MPS per co-runner's bandwidth share.
    `switch_milli`: losses of time slicing per co-runner. `most`: jobs on one GPU."""

    kind: Sharing = Sharing.ASKED
    reconfigure_s: int = 60
    crowding_milli: int = 100
    switch_milli: int = 50
    most: int = 7

    PART = "sharing"


@dataclass(frozen=True, slots=True)
class ElasticPart(_Checked):
    """Resizing while running. `resize_s`: seconds in which a resized job does nothing.
    `efficiency_milli`: thousandths of speed per GPU kept with each doubling of the tasks.
    `every_s`: a job is resized at most once in so long."""

    kind: Elastic = Elastic.FIXED
    resize_s: int = 60
    efficiency_milli: int = 950
    every_s: int = 600

    PART = "elastic"


Part = TypeVar("Part", TopologyPart, DefragPart, SharingPart, ElasticPart)
PARTS: dict[str, type[Any]] = {
    cls.PART: cls for cls in (TopologyPart, DefragPart, SharingPart, ElasticPart)
}


def part_keys() -> list[str]:
    """Every key of the parts, as on the command line; a part's own name is its `kind`."""
    keys = []
    for name, cls in PARTS.items():
        for field in fields(cls):
            keys.append(f"{name}.{field.name}")
            if field.name == "kind":
                keys.append(name)
    return sorted(keys)


def part_changed(part: Part, key: str, value: object) -> Part:
    """The part with one key of the command line replaced."""
    name = key.partition(".")[2] or "kind"
    known = {field.name for field in fields(part)}
    if name not in known:
        raise PolicyError(f"policy: no key {key}; known: {', '.join(part_keys())}")
    changes: dict[str, Any] = {name: read_value(key, getattr(part, name), str(value))}
    return replace(part, **changes)


def part_toml(part: Any) -> list[str]:
    """Lines of a TOML table that `part_changed` reads back, of what is not the default."""
    default = type(part)()
    lines = [f"[{part.PART}]"]
    for field in fields(part):
        value = getattr(part, field.name)
        if value == getattr(default, field.name):
            continue
        if isinstance(value, bool):
            lines.append(f"{field.name} = {str(value).lower()}")
        elif isinstance(value, str):
            lines.append(f'{field.name} = "{value}"')
        else:
            lines.append(f"{field.name} = {value}")
    return ["", *lines] if len(lines) > 1 else []


ANY_TOPOLOGY = TopologyPart()
NO_DEFRAG = DefragPart()
AS_ASKED = SharingPart()
FIXED_SIZE = ElasticPart()
