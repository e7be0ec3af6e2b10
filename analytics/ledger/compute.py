"""One window of one cluster: from facts to the ledger's rows, nothing written but keys."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa

from analytics.errors import LedgerError
from analytics.fragmentation import Distribution
from analytics.ledger.activity import Seen
from analytics.ledger.broken import Breakage, mark_failed
from analytics.ledger.causes import causes
from analytics.ledger.classes import CLASSES
from analytics.ledger.closing import closed_at
from analytics.ledger.events import (
    EventList,
    domains,
    held_events,
    node_events,
    reservation_events,
    running_events,
)
from analytics.ledger.evidence import evidence_table
from analytics.ledger.facts import load
from analytics.ledger.fleet import Fleet, clip
from analytics.ledger.fragment import Fragments, fragments
from analytics.ledger.frame import Frame
from analytics.ledger.held import Conflict, Held
from analytics.ledger.heldrows import HeldRows, held_rows
from analytics.ledger.host import HostShares, host_shares
from analytics.ledger.idleboards import cut_up, name_idle_boards
from analytics.ledger.idlememory import post_idle_memory
from analytics.ledger.kernel import state as k
from analytics.ledger.kernel.sweep import sweep
from analytics.ledger.kernel.world import new_world
from analytics.ledger.keys import Keys
from analytics.ledger.lost import durable_points, mark_thrown
from analytics.ledger.notheld import TARGETS, WIDTH
from analytics.ledger.parts import cut_and_measure
from analytics.ledger.pending import PendingJobs, load_pending
from analytics.ledger.pricing import PriceTimes
from analytics.ledger.profile import DemandProfile, demand_profile
from analytics.ledger.ranks import mark_started_apart
from analytics.ledger.remainder import Left, remainders
from analytics.ledger.resolve import resolve
from analytics.ledger.rogue import rogue_use
from analytics.ledger.rollup import activity_table, idle_memory_table, recall
from analytics.ledger.rows import rows_table
from analytics.ledger.settings import LedgerSettings, SettingHistory
from analytics.ledger.slices import cut, cuts
from analytics.ledger.tasks import task_distribution
from analytics.window import HOUR_US, from_us, to_us
from collector.store import Work

US = 1_000_000


@dataclass(slots=True)
class Computed:
    """What a build found: rows of ``ledger_hour``, conflicts, and what decided."""

    rows: pa.Table
    causes: pa.Table
    activity: pa.Table
    idle_memory: pa.Table
    evidence: pa.Table
    fragments: Fragments
    conflicts: list[Conflict]
    profiles: list[DemandProfile]
    settings: LedgerSettings
    installed_us: dict[int, int]
    """Hour (us) -> installed GPU time in micro-GPU-seconds."""
    samples: dict[datetime, int] | None
    """How many samples bear on each hour; None = they were not read."""


def compute(work: Work, cluster: str, since: int, until: int, gone: Iterable[int] = ()) -> Computed:
    """The ledger of ``cluster`` over ``[since, until)``, microseconds.

    ``gone``: hours whose samples were dropped since; their activity comes from the roll-up.
    Raises LedgerError if the rows do not add up to what is installed, which would be a fault here.
    """
    midnight = from_us(since).replace(hour=0, minute=0, second=0, microsecond=0)
    history = SettingHistory.load(work, cluster)
    settings = history.at(midnight)  # a setting holds from the next UTC day on
    start = since - settings.pass_interval_s * US
    facts = load(work, cluster, since, until, lead=since - start)
    fleet = Fleet.of(facts)
    fixed = closed_at(work, cluster, midnight.date())
    prices = PriceTimes.load(work, cluster, settings.purchase_type, fixed)
    models = {model for _, model in fleet.pools}
    bounds = cuts(since, until, prices.changes(models) | _mapping_changes(work, cluster))
    held = resolve(facts, fleet, start, until)
    broken = mark_failed(facts, fleet, held)
    profiles = _profiles(work, cluster, history, (start, until))
    keys = Keys(work, cluster, facts.runs)
    frame = Frame(
        work, facts, fleet, _clipped(held, since), bounds, prices, history, profiles, keys
    )
    host = host_shares(facts, fleet)
    points = durable_points(work, facts, settings)
    mark_thrown(frame.held, points)
    parts = cut_and_measure(frame, broken.all, settings)
    rogue = rogue_use(work, facts, fleet, start) if parts.seen.may_be_rogue(start) else []
    rest, found, pending = _sweep(frame, held, host, (broken.loose, rogue), start)
    late = mark_started_apart(frame, parts, settings)
    recall(work, cluster, fleet, parts, gone)
    busy = held_rows(frame.held, parts, settings.hang_least_s * US)
    left, geometry = remainders(frame, broken.all, busy.shared)
    installed = _check(frame, busy, rest, left)
    boards = cut_up(frame)
    name_idle_boards(frame, rest, left, boards)
    idle = post_idle_memory(frame, parts.spare, (rest, left), boards, sorted(gone))
    return Computed(
        rows=rows_table(frame, busy, rest, left),
        causes=causes(frame, found, pending, host, busy, geometry),
        activity=activity_table(frame, parts),
        idle_memory=idle_memory_table(frame, idle),
        evidence=evidence_table(frame, busy, points, late),
        fragments=fragments(frame, host, broken.loose, _distributions(frame), prices.names),
        conflicts=frame.held.conflicts,
        profiles=profiles,
        settings=settings,
        installed_us=_by_hour(installed, bounds),
        samples=_counted(parts.seen, since),
    )


def _counted(seen: Seen, since: int) -> dict[datetime, int] | None:
    if seen.by_hour is None:
        return None
    return {from_us(since + nth * HOUR_US): n for nth, n in enumerate(seen.by_hour.tolist())}


def _mapping_changes(work: Work, cluster: str) -> set[int]:
    rows = work.rows(
        "SELECT DISTINCT epoch_us(unnest([valid_from, valid_to])) AS t FROM org_map "
        "WHERE cluster = ? OR cluster IS NULL",
        [cluster],
    )
    return {row["t"] for row in rows if row["t"] is not None}


def _profiles(
    work: Work, cluster: str, history: SettingHistory, span: tuple[int, int]
) -> list[DemandProfile]:
    day = from_us(span[0]).replace(hour=0, minute=0, second=0, microsecond=0)
    profiles = []
    while to_us(day) < span[1]:
        profiles.append(demand_profile(work, cluster, day, history.at(day)))
        day += timedelta(days=1)
    return profiles


def _distributions(frame: Frame) -> dict[datetime, Distribution]:
    return {
        p.day: task_distribution(frame.work, frame.facts.cluster, p.day, frame.settings.at(p.day))
        for p in frame.profiles
    }


def _sweep(
    frame: Frame, held: Held, host: HostShares,
    lone: tuple[list[Breakage], list[tuple[int, int, int]]], start: int,
) -> tuple[k.Array, k.Array, PendingJobs]:  # fmt: skip
    """What every GPU that is not held was, ``[pool, slot, column]``, the causes, and who waits;
    ``lone``: GPUs that are broken and not held, and stretches of those that nobody's run uses."""
    facts, fleet = frame.facts, frame.fleet
    pending = load_pending(frame.work, facts, fleet, start, frame.prices.names)
    if not fleet.pools:
        nothing = np.zeros((0, k.CAUSE_COLUMNS), np.int64)
        return np.zeros((0, frame.bounds.shape[0] - 1, WIDTH), np.int64), nothing, pending
    out, demand = EventList(start, facts.until), []
    for row, profile in enumerate(frame.profiles):
        out.at(to_us(profile.day), k.PARAMETERS, row, 0)
        demand.append(_parameters(profile, frame.settings.at(profile.day)))
    node_events(out, facts, fleet)
    held_events(out, held, host, lone[0])
    out.few(k.ROGUE, lone[1])
    given = {
        "node": np.array(fleet.node_of, np.int64), "nodes": len(fleet.nodes),
        "domain": domains(fleet), "kept": reservation_events(out, facts, fleet),
        "running": running_events(out, facts, fleet, held, host),
        "jobs": pending.jobs, "allowed": pending.allowed, "demand": np.array(demand, np.int64),
        "widest": max(gpus for timeline in fleet.installed for _, _, gpus in timeline),
        "targets": TARGETS, "bounds": frame.bounds,
    }  # fmt: skip
    out.steps(pending.events)
    world = new_world({**given, "events": out.arrays()}, WIDTH)
    found = sweep(world)
    return world.posts, found, pending


def _parameters(profile: DemandProfile, settings: LedgerSettings) -> list[int]:
    row = []
    for demand in (profile.middle, profile.low, profile.high):
        row += [-1 if v is None else v for v in (demand.cpu_milli, demand.mem_mib)]
    return [*row, settings.headroom_gpus, settings.pass_interval_s * US]


def _clipped(held: Held, since: int) -> Held:
    """Without the lead-in before the window."""
    pieces = [p if p.t0 >= since else replace(p, t0=since) for p in held.pieces if p.t1 > since]
    plain = held.plain.picked(held.plain.t1 > since)
    plain.t0 = np.maximum(plain.t0, since)
    conflicts = [replace(c, t0=max(c.t0, since)) for c in held.conflicts if c.t1 > since]
    return Held(held.per_gpu, plain, pieces, conflicts)


def _installed(fleet: Fleet, bounds: k.Array) -> k.Array:
    """Installed micro-GPU-seconds per pool and slot."""
    rows = [
        (pool, *row) for pool, timeline in enumerate(fleet.installed)
        for row in clip(timeline, int(bounds[0]), int(bounds[-1]))
    ]  # fmt: skip
    pool, t0, t1, gpus = np.ascontiguousarray(np.array(rows, np.int64).reshape(-1, 4).T)
    which, slot, begin, end = cut(t0, t1, bounds)
    table = np.zeros((len(fleet.pools), bounds.shape[0] - 1), np.int64)
    np.add.at(table, (pool[which], slot), gpus[which] * (end - begin))
    return table


def _check(frame: Frame, busy: HeldRows, rest: k.Array, left: Left) -> k.Array:
    """The product's first promise, on every build; returns what is installed."""
    posted = rest[:, :, :CLASSES].sum(axis=2)
    np.add.at(posted, (busy.pool, busy.slot), busy.classes.sum(axis=1))
    for (pool, _, slot), classes in left.items():
        posted[pool, slot] += sum(classes.values())
    installed = _installed(frame.fleet, frame.bounds)
    wrong = np.argwhere(posted != installed)
    if wrong.size or (rest < 0).any() or (busy.classes < 0).any():
        node = frame.fleet.pools[wrong[0][0]] if wrong.size else "?"
        raise LedgerError(
            f"cluster {frame.facts.cluster}: the ledger of {node} does not add up to what is "
            "installed; nothing was written. This is a fault of unstrand: please report it"
        )
    return installed


def _by_hour(installed: k.Array, bounds: k.Array) -> dict[int, int]:
    totals: dict[int, int] = {}
    for slot, amount in enumerate(installed.sum(axis=0).tolist()):
        hour = int(bounds[slot]) // HOUR_US * HOUR_US
        totals[hour] = totals.get(hour, 0) + amount
    return totals
