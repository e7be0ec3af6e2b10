"""Grouping of advice that overlaps, and the order in which it is read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from scheduler_advisor.advice.amount import claims
from scheduler_advisor.advice.recommendation import Recommendation
from scheduler_advisor.advice.same_act import same_act
from scheduler_advisor.advice.saving import with_joint_claims
from scheduler_advisor.goals import Goals

# Kinds that serve a goal other than money: they come first where the operator asked for it.
SERVES = {
    "response_time": ("gang_wait", "fragmentation", "reserved_unused", "quota_unused",
                      "over_request", "whole_node_memory", "policy_change"),
    "fairness": ("quota_unused", "reserved_unused", "over_request", "unattributed"),
}  # fmt: skip
EFFORT = {"low": Decimal(1), "medium": Decimal("1.5"), "high": Decimal("2.5")}
ALIKE = 0.05  # sharing less than a twentieth of the smaller one is no overlap worth naming


def grouped(found: Sequence[Recommendation]) -> list[Recommendation]:
    """Name for each recommendation the group whose savings must not be added, and its members."""
    groups = {rec.id: {rec.id} for rec in found}
    for a, b in _overlapping(found):
        merged = groups[a] | groups[b]
        for name in merged:
            groups[name] = merged
    return [_in_group(rec, sorted(groups[rec.id])) for rec in found]


def _in_group(rec: Recommendation, group: list[str]) -> Recommendation:
    if len(group) == 1:
        return rec
    others = tuple(name for name in group if name != rec.id)
    return replace(rec, exclusive_group=f"overlap-{group[0]}", overlaps=others)


def _overlapping(found: Sequence[Recommendation]) -> list[tuple[str, str]]:
    """Pairs that share at least `ALIKE` of the smaller one's GPU time, or are the same act."""
    drafts = with_joint_claims([rec.draft for rec in found])
    joined = {rec.id: draft.parts for rec, draft in zip(found, drafts, strict=True)}
    owners: dict[str, list[str]] = defaultdict(list)
    for rec in found:
        for claim in claims(joined[rec.id]):
            owners[claim].append(rec.id)
    size: dict[str, int] = {}
    by_claim: dict[tuple[str, str], int] = defaultdict(int)
    for rec in found:
        size[rec.id] = sum(part.micro_gpu_s for part in joined[rec.id])
        for part in joined[rec.id]:
            by_claim[rec.id, part.claim] += part.micro_gpu_s
    shared: dict[tuple[str, str], int] = defaultdict(int)
    for claim, names in owners.items():
        for place, a in enumerate(sorted(names)):
            for b in sorted(names)[place + 1 :]:
                shared[a, b] += min(by_claim[a, claim], by_claim[b, claim])
    alike = [(a, b) for (a, b), micro in shared.items() if micro >= ALIKE * min(size[a], size[b])]
    same = [(a.id, b.id) for a in found for b in found if same_act(a.draft, b.draft)]
    return alike + same


def trust(rec: Recommendation) -> float:
    """What is left of a saving's weight: kinds that have failed here count for less.

    1 for a kind that was never judged or that held at least half of the time; below that, twice
    the share of the next cases that is expected to hold.
    """
    return 1.0 if rec.confidence is None else min(2 * rec.confidence.ratio, 1.0)


def ranked(found: Sequence[Recommendation], goals: Goals) -> list[Recommendation]:
    """Data quality first, then what the goals put first, then saving over effort and trust."""
    serves = SERVES.get(goals.first, ())

    def key(rec: Recommendation) -> tuple[bool, bool, bool, Decimal, float, float, str]:
        trusted = Decimal(repr(trust(rec)))
        worth = (rec.saving.cost or Decimal(0)) / EFFORT[rec.effort] * trusted
        hours = rec.saving.gpu_hours
        if goals.first == "throughput":
            worth = Decimal(repr(hours)) / EFFORT[rec.effort] * trusted
        # Of what saves nothing by itself, that which concerns the most GPU time.
        concerned = rec.current_gpu_hours if rec.draft.first else 0.0
        return (
            not rec.draft.first, not rec.open, rec.kind not in serves, -worth, -hours, -concerned,
            rec.id,
        )  # fmt: skip

    ordered = sorted(found, key=key)
    return [replace(rec, rank=place) for place, rec in enumerate(ordered, 1)]
