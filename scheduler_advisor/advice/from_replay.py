"""Steps 6 to 8: what the replay found, priced, explained and handed over as recommendations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from scheduler_advisor.advice.amount import Part
from scheduler_advisor.advice.checkpoints_told import (
    checkpoint_assumptions,
    intervals,
    intervals_said,
    leans_on_stops,
    mostly_lost,
    touches_checkpoints,
)
from scheduler_advisor.advice.draft import (
    Assumption,
    Draft,
    Duty,
    FromReplay,
    Keys,
    NotRecommended,
    Owner,
    Phrase,
    Phrases,
)
from scheduler_advisor.advice.fewer_nodes import RULE as FEWER_NODES
from scheduler_advisor.advice.fewer_nodes import fewer_nodes
from scheduler_advisor.advice.handed import commands_of, handed_over
from scheduler_advisor.advice.replay_told import (
    bound_json,
    bounds_said,
    classes,
    grade_said,
    phrases,
    shifts,
    teams,
    tried_json,
    worth_said,
)
from scheduler_advisor.advice.rule import Rule, rule
from scheduler_advisor.advice.site import CLASSES, Site
from scheduler_advisor.advice.site_told import of_site
from scheduler_advisor.durations import duration_text
from scheduler_advisor.figure import Unit, modelled

if TYPE_CHECKING:
    from scheduler_advisor.followup.shift import Withdrawn
    from scheduler_advisor.handover.checkpoints import Interval
    from scheduler_advisor.replayed import Replayed
    from scheduler_advisor.search.candidate import Candidate
    from scheduler_advisor.search.search import Found

LIMITS = "quota"  # `catalogue.Part`: of limits of teams
RULE = rule("policy_change", risk=1, effort="low", needs=("scheduler",))
_PRICE = """
SELECT sum(price * ({all}))::DOUBLE / nullif(sum({all}), 0) AS price,
  sum(CASE WHEN cash THEN ({all}) ELSE 0 END)::DOUBLE / nullif(sum({all}), 0) AS cash
FROM advice_cell WHERE cluster = $1 AND price IS NOT NULL
"""


def from_replay(
    site: Site, replay: Replayed
) -> tuple[list[tuple[Draft, Rule]], list[NotRecommended]]:
    """Recommendations of one cluster's replay, or why there are none."""
    if replay.found is None:
        why = NotRecommended(RULE.kind, replay.cluster, replay.withheld or "no_history",
                             dict(replay.params))  # fmt: skip
        return [], [why]
    price, cash = price_of(site, replay.cluster)
    drafts = [
        (_draft(site, replay, replay.found, each, (price, cash)), _rule(each))
        for each in replay.found.best
    ]
    gone = [
        NotRecommended(RULE.kind, replay.cluster, "withdrawn",
                       {"subject": _changes(each.subject), "what": _shifted(each)})
        for each in replay.withdrawn
    ]  # fmt: skip
    fewer = fewer_nodes(site, replay)
    if fewer is not None:
        drafts.append((fewer, FEWER_NODES))
    if drafts:
        return drafts, gone
    nothing = NotRecommended(RULE.kind, replay.cluster, "replay_nothing",
                             {"tried": len(replay.found.tried)})  # fmt: skip
    return [], [nothing, *gone]


def _changes(subject: str) -> Phrases:
    return phrases("change", subject.split(" + "))


def _shifted(gone: Withdrawn) -> Phrases:
    """What has changed in the workload, each with its numbers."""
    if not gone.shifts:
        return Phrases([Phrase("shift.none", {})])
    return Phrases(
        Phrase(f"shift.{each.what}", {"before": _number(each.what, each.before),
                                      "after": _number(each.what, each.after)})
        for each in gone.shifts
    )  # fmt: skip


def _number(what: str, value: float) -> float | str:
    return duration_text(value) if what.endswith("_s") else value


def price_of(site: Site, cluster: str) -> tuple[float | None, float]:
    """Mean price of a GPU-hour of the cluster, None unpriced, and the share that can be given
    back."""
    row = site.rows(_PRICE.format(all=" + ".join(CLASSES)), [cluster])[0]
    return row["price"], row["cash"] or 0.0


def _rule(each: Candidate) -> Rule:
    return rule(RULE.kind, risk=each.risk, effort=each.effort, needs=RULE.needs)


def _draft(
    site: Site, replay: Replayed, found: Found, each: Candidate, price: tuple[float | None, float]
) -> Draft:
    assert replay.target is not None
    rows = intervals(found, each)
    handover = handed_over(each.changes, replay.target, found.policy, rows)
    own = replayed_saving(replay, found, each, price[0], handover)
    return Draft(
        kind=RULE.kind, cluster=replay.cluster, subject=each.name, owner=Owner(),
        duty=Duty.PLATFORM, variant="lost" if mostly_lost(each) else each.gain.value,
        params=_params(replay, found, each, rows, price[0]),
        parts=parts_of(found, each, price), current=[],
        figures=(
            modelled("replay_blocked", float(found.today.blocked.sum()), Unit.GPU_HOURS),
            modelled("replay_blocked_after", float(each.found.blocked.sum()), Unit.GPU_HOURS),
            modelled("mean_wait_before", found.today.mean_wait_s, Unit.SECONDS),
            modelled("mean_wait_after", each.found.mean_wait_s, Unit.SECONDS),
        ),
        examples=_examples(found, each), samples=int(found.bench.past.judged.sum()),
        assumptions=assumptions_of(replay, found, each), replay=own,
        alternatives=(), commands=commands_of(handover),
    )  # fmt: skip


def _params(
    replay: Replayed,
    found: Found,
    each: Candidate,
    rows: Sequence[Interval],
    price: float | None,
) -> Mapping[str, Any]:
    today, found_ = found.today, each.found
    names = [change.name for change in each.changes]
    before, after = {"urgent": (today.urgent_p95_s, found_.urgent_p95_s),
                     "big": (today.big_p95_s, found_.big_p95_s),
                     "team": (today.starved_p95_s, found_.starved_p95_s)}.get(
        each.gain.value, (today.p95_wait_s, found_.p95_wait_s)
    )  # fmt: skip
    leading = replay.diagnosis.leading.value if replay.diagnosis else "nothing"
    measured = each.measured
    return {
        "changes": phrases("change", names),
        "how": Phrases([*phrases("change_how", names), *intervals_said(rows),
                        *of_site(found.bench.past, each)]),
        "risks": phrases("change_risk", names),
        "trial": Keys([f"change_trial.{'teams' if each.parts == {LIMITS} else 'partition'}"]),
        "leading": Keys([f"cause_name.{leading}"]),
        "grade": grade_said(replay.grade.value), "low": measured.low, "high": measured.high,
        "before": float(found.today.blocked.sum()), "after": float(each.found.blocked.sum()),
        "lost_before": float(found.today.lost.sum()), "lost_after": float(each.found.lost.sum()),
        "worth": worth_said(found, price),
        "bounds": bounds_said(found.bounds.get(each.name, ())),
        "wait_before": duration_text(before), "wait_after": duration_text(after),
        "tried": len(found.tried), "jobs": int(found.bench.past.judged.sum()),
    }  # fmt: skip


def replayed_saving(
    replay: Replayed,
    found: Found,
    each: Candidate,
    price: float | None,
    handover: Mapping[str, Any],
) -> FromReplay:
    """Point and interval in GPU-hours and money, and everything that a reader may ask about."""
    hours = (each.hours.point, each.hours.low, each.hours.high)
    measured = each.measured
    waiting = float(each.wait_cost_daily.mean()) * 7 if len(each.wait_cost_daily) else 0.0
    cost = None if price is None else tuple(hour * price + waiting for hour in hours)
    today, after = found.today, each.found
    return FromReplay(
        grade=replay.grade.value, promises=replay.grade.promises, gain=each.gain.value,
        gpu_hours=hours, cost=cost,  # type: ignore[arg-type]
        shifts=shifts(found, each), classes=classes(each), teams=teams(each),
        bounds=tuple(bound_json(bound) for bound in found.bounds.get(each.name, ())),
        tried=tuple(tried_json(found)), handover=handover,
        blast_gpus=(today.blast_gpus, after.blast_gpus), worth_nodes=found.worth.nodes,
        measure=each.gain.value, measured=(measured.point, measured.low, measured.high),
        not_resumable=next((u for u in replay.not_resumable if u.change == each.name), None),
        wins_lost=touches_checkpoints(each),
    )  # fmt: skip


def parts_of(found: Found, each: Candidate, price: tuple[float | None, float]) -> list[Part]:
    """The window's days; freed hours are cash only as far as the capacity can be given back."""
    past, cluster = found.bench.past, found.bench.past.name
    parts = []
    for place, (hours, waiting) in enumerate(zip(each.daily, each.wait_cost_daily, strict=True)):
        for cash, share in ((False, 1 - price[1]), (True, price[1])):
            if not share:
                continue
            cost = None if price[0] is None else Decimal(repr(float(hours * share * price[0])))
            if cost is not None and not cash:
                cost += Decimal(repr(float(waiting)))
            parts.append(
                Part(claim=f"policy:{cluster}", day=past.day(place).date(),
                     micro_gpu_s=round(float(hours * share * 3.6e9)), cost=cost, cash=cash,
                     cluster=cluster)
            )  # fmt: skip
    return parts


def _examples(found: Found, each: Candidate) -> list[str]:
    """The three jobs whose wait changes most."""
    import numpy as np

    jobs = found.bench.past.jobs
    gained = found.today.waits - each.found.waits
    order = np.argsort(-np.nan_to_num(gained, nan=0.0), kind="stable")[:3]
    ids = np.asarray(jobs.job_id)[found.bench.past.judged]
    return [str(ids[place]) for place in order if gained[place] > 0]


def assumptions_of(replay: Replayed, found: Found, each: Candidate) -> tuple[Assumption, ...]:
    """What every amount of a replay rests on."""
    calibration = replay.calibration
    assert calibration is not None
    source = calibration.in_force.source
    assumed = [Assumption(f"policy_{source}", found.policy.order.value, source != "settings")]
    if any(change.owners for change in each.changes):
        assumed.append(Assumption("owners_return", "", True))
    assumed += [Assumption("replay_remark", text, True) for text in calibration.in_force.remarks]
    assumed.append(Assumption("same_arrivals", "", True))
    if leans_on_stops(each):
        past = found.bench.past
        assumed += checkpoint_assumptions(past.checkpoints, past.gpus_held.tolist())
    return tuple(assumed)
