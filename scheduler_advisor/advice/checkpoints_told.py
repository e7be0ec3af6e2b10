"""A candidate that changes checkpoints, in words: old and new intervals, and what they rest on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from scheduler_advisor.advice.amount import MICRO_GPU_S_PER_HOUR
from scheduler_advisor.advice.draft import Assumption, Draft, Phrase
from scheduler_advisor.durations import duration_text

if TYPE_CHECKING:
    from scheduler_advisor.checkpoints import Checkpoints
    from scheduler_advisor.handover.checkpoints import Interval
    from scheduler_advisor.replayed import Replayed
    from scheduler_advisor.search.candidate import Candidate
    from scheduler_advisor.search.search import Found

FORMULA = "checkpoint_interval"  # the kind of advice that rests on Young and Daly's formula
NAMED = 6  # classes of jobs that a sentence names, the largest first


def intervals(found: Found, each: Candidate) -> list[Interval]:
    """Old and new seconds from checkpoint to checkpoint, by class of jobs, the largest first; empty
    where the candidate leaves them alone."""
    import numpy as np

    from scheduler_advisor.handover.checkpoints import Interval

    known, how = found.bench.past.checkpoints, each.trial.world.writing
    if known is None or not how:
        return []
    new, gpus = known.apart(how), found.bench.past.gpus_held
    rows = []
    for at, name in enumerate(known.classes):
        own = np.flatnonzero((known.of_class == at) & known.known)
        if len(own):
            cost = float(np.median(known.cost[own]))
            rows.append(
                (float((gpus * known.held)[own].sum()),
                 Interval(name, float(np.median(known.every[own])) + cost,
                          float(np.median(new[own])) + cost, cost))
            )  # fmt: skip
    return [interval for _, interval in sorted(rows, key=lambda row: (-row[0], row[1].name))]


def intervals_said(rows: Sequence[Interval]) -> list[Phrase]:
    """One phrase for each class whose interval changes."""
    return [
        Phrase("interval.row", {"name": row.name, "now": duration_text(row.now_s),
                                "new": duration_text(row.new_s)})
        for row in rows[:NAMED] if round(row.now_s) != round(row.new_s)
    ]  # fmt: skip


def mostly_lost(each: Candidate) -> bool:
    """Whether at least half of the capacity that it wins back is work that was lost to stops, or
    time of checkpoints."""
    won = float((each.today.lost - each.found.lost).sum())
    return each.gain.value == "capacity" and won >= 0.5 * float(each.daily.sum()) > 0


def touches_checkpoints(each: Candidate) -> bool:
    """Whether it changes how checkpoints are written."""
    return "checkpoint" in {part.value for part in each.parts}


def leans_on_stops(each: Candidate) -> bool:
    """Whether what it brings depends on what a stopped job loses."""
    return bool({"checkpoint", "preemption", "defrag"} & {part.value for part in each.parts})


def as_replayed(drafts: Sequence[Draft], replays: Sequence[Replayed]) -> list[Draft]:
    """Advice from facts on intervals, of no more than what the same intervals win in the replay.

    The formula takes stops to come at any time. Where a scheduler stops the job that began last,
    the same ones are stopped again and again, soon after they began: the replay has that.
    """
    most = {
        each.cluster: float(tried.daily.sum()) * MICRO_GPU_S_PER_HOUR
        for each in replays if each.found is not None and each.grade.promises
        for tried in each.found.tried if tried.name == "checkpoint_optimum"
    }  # fmt: skip
    said: dict[str | None, int] = defaultdict(int)
    for draft in drafts:
        if draft.kind == FORMULA:
            said[draft.cluster] += sum(part.micro_gpu_s for part in draft.parts)
    found = []
    for draft in drafts:
        limit = most.get(draft.cluster or "")
        if draft.kind != FORMULA or limit is None or said[draft.cluster] <= limit:
            found.append(draft)
        elif limit > 0:
            factor = limit / said[draft.cluster]
            found.append(replace(
                draft, parts=[part.scaled(factor) for part in draft.parts],
                assumptions=(*draft.assumptions, Assumption("checkpoint_replayed", "", False)),
            ))  # fmt: skip
    return found


def checkpoint_assumptions(known: Checkpoints | None, gpus: Sequence[float]) -> list[Assumption]:
    """Where intervals and costs come from, by share of the GPU time that goes on after a stop."""
    if known is None or not known.known.any():
        return []
    held: dict[str, float] = defaultdict(float)
    rows = zip(known.evidence, known.wrote.tolist(), known.has_read.tolist(),
               known.held.tolist(), gpus, strict=True)  # fmt: skip
    for evidence, wrote, has_read, seconds, count in rows:
        if evidence:
            held["all"] += seconds * count
            held[evidence] += seconds * count
            held["cost"] += 0.0 if wrote else seconds * count
            held["restore"] += 0.0 if has_read else seconds * count
    shares = {name: f"{amount / (held['all'] or 1.0):.0%}" for name, amount in held.items()}
    found = [
        Assumption(f"checkpoint_{name}", shares[name], default=name in ("cost", "restore"))
        for name in ("mark", "declared", "learnt", "cost", "restore")
        if shares.get(name, "0%") != "0%"
    ]
    return [*found, Assumption("stops_continue", "", default=True)]
