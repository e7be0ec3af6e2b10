"""From a window of facts to ranked recommendations, in the order of the steps below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from scheduler_advisor.advice.amount import total
from scheduler_advisor.advice.checkpoints_told import as_replayed
from scheduler_advisor.advice.draft import Draft, NotMeasured, NotRecommended
from scheduler_advisor.advice.facts_present import facts_present
from scheduler_advisor.advice.fewer_nodes import RULE as FEWER_NODES
from scheduler_advisor.advice.from_replay import RULE as REPLAY_RULE
from scheduler_advisor.advice.from_replay import from_replay
from scheduler_advisor.advice.held_to_replay import held_to_replay
from scheduler_advisor.advice.kinds import KINDS
from scheduler_advisor.advice.order import grouped, ranked
from scheduler_advisor.advice.recommendation import Recommendation, Saving, recommendation_id
from scheduler_advisor.advice.rule import Rule
from scheduler_advisor.advice.saving import joint_saving, saving_of
from scheduler_advisor.advice.site import Site
from scheduler_advisor.advice.states import histories, state_at
from scheduler_advisor.advice.trust import with_record
from scheduler_advisor.errors import GoalsError
from scheduler_advisor.followup.record import confidence

if TYPE_CHECKING:
    from scheduler_advisor.replayed import Replayed

EXPIRES_AFTER = timedelta(days=14)  # two reports later the evidence is another window's
LEAST_COVERAGE = 0.5  # below, activity is known for less than half: no advice on activity


@dataclass(frozen=True, slots=True)
class Advice:
    """Ranked recommendations, the joint saving of the open ones, and what was not advised."""

    recommendations: list[Recommendation]
    joint: Saving
    not_measured: list[NotMeasured]
    not_recommended: list[NotRecommended]


def advise(site: Site, at: datetime, replays: Sequence[Replayed] = ()) -> Advice:
    """All advice that the facts of ``site``, and replays of them, carry at ``at``."""
    check_thresholds(site.goals.thresholds)
    drafts, not_measured, not_recommended = _findings(site)
    kept = as_replayed([draft for draft, _ in drafts], replays)
    rules = {(draft.kind, draft.cluster, draft.subject): rule for draft, rule in drafts}
    drafts = [(draft, rules[draft.kind, draft.cluster, draft.subject]) for draft in kept]
    drafts, refuted = held_to_replay(site, drafts, replays)
    not_recommended += refuted
    for replay in replays:
        simulated, withheld = from_replay(site, replay)
        drafts += simulated
        not_recommended += withheld
    priced = [_priced(site, draft, rule, at) for draft, rule in drafts]
    with_state = _with_states(site, priced, at)
    ordered = ranked(grouped(with_state), site.goals)
    still_open = [rec.draft for rec in ordered if rec.open]
    return Advice(ordered, joint_saving(still_open, site.window), not_measured, not_recommended)


def check_thresholds(own: dict[str, dict[str, float]]) -> None:
    """GoalsError for a threshold of a kind or name that no rule has."""
    known = {kind.RULE.kind: set(kind.RULE.thresholds) for kind in KINDS}
    known[REPLAY_RULE.kind] = set()
    known[FEWER_NODES.kind] = set(FEWER_NODES.thresholds)
    for kind, names in own.items():
        if kind not in known:
            raise GoalsError(
                f"thresholds.{kind}: no such kind of advice: one of {', '.join(sorted(known))}"
            )
        for name in sorted(set(names) - known[kind]):
            raise GoalsError(
                f"thresholds.{kind}.{name}: no such threshold: one of "
                f"{', '.join(sorted(known[kind])) or 'none'}"
            )


def _findings(
    site: Site,
) -> tuple[list[tuple[Draft, Rule]], list[NotMeasured], list[NotRecommended]]:
    present = facts_present(site)
    known = _activity_known(site)
    drafts: list[tuple[Draft, Rule]] = []
    not_measured: list[NotMeasured] = []
    not_recommended: list[NotRecommended] = []
    for kind in KINDS:
        rule = kind.RULE
        missing = tuple(need for need in rule.needs if need not in present)
        if missing:
            not_measured.append(NotMeasured(rule.kind, missing))
        elif "activity" in rule.needs and known < LEAST_COVERAGE:
            not_recommended.append(
                NotRecommended(rule.kind, "", "low_coverage", {"coverage": known})
            )
        else:
            for found in kind.find(site):
                if isinstance(found, NotRecommended):
                    not_recommended.append(found)
                else:
                    drafts.append((found, rule))
    return drafts, not_measured, not_recommended


def _activity_known(site: Site) -> float:
    """Share of held GPU time with a measured activity."""
    row = site.rows(
        "SELECT sum(used + lost + allocated_idle)::BIGINT AS known, "
        "sum(allocated_unmeasured)::BIGINT AS unknown FROM advice_cell"
    )[0]
    held = (row["known"] or 0) + (row["unknown"] or 0)
    return float(row["known"] / held) if held else 1.0


def _priced(site: Site, draft: Draft, rule: Rule, at: datetime) -> Recommendation:
    current = total(draft.parts if draft.current is None else draft.current)
    return Recommendation(
        id=recommendation_id(draft), draft=draft, saving=saving_of(draft, site.window),
        current_cost=current.cost, current_gpu_hours=current.gpu_hours, risk=rule.risk,
        effort=rule.effort, rules=rule.as_json(site.goals), expires_at=at + EXPIRES_AFTER,
    )  # fmt: skip


def _with_states(site: Site, found: Sequence[Recommendation], at: datetime) -> list[Recommendation]:
    history = histories(site.work)
    trust = {each.kind: each for each in confidence(site.work)}
    return [
        with_record(replace(rec, history=own, state=state_at(own, at)), trust.get(rec.kind))
        for rec in found
        for own in [history.get(rec.id, ())]
    ]
