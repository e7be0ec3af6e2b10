"""N fewer nodes: a plain alternative to a change of policy, where the goals hold without them.

Advised only where the nodes can be given back: an owned node that stands idle is no money. What is
known of other numbers of nodes stands among what was tried.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from scheduler_advisor.advice.amount import Part
from scheduler_advisor.advice.draft import Assumption, Draft, Duty, FromReplay, Owner
from scheduler_advisor.advice.replay_told import classes, grade_said, shifts, tried_json
from scheduler_advisor.advice.rule import Threshold, rule
from scheduler_advisor.advice.site import CLASSES, Site
from scheduler_advisor.figure import Unit, modelled

if TYPE_CHECKING:
    from scheduler_advisor.replayed import Replayed
    from scheduler_advisor.search.nodes import NodesPoint
    from scheduler_advisor.search.search import Found
    from scheduler_advisor.search.waits import ClassWait

RULE = rule(
    "fewer_nodes",
    risk=2,
    effort="high",
    needs=("scheduler",),
    least_share=Threshold(
        0.05, "ratio", "of the fleet: below, one bad day takes as many nodes away as the advice"
    ),
)
HOURS = 24
SHORT = 300  # seconds: waits below five minutes are told apart by nobody
# The price and the share that can be given back of the last nodes of the fleet.
_PRICE = """
SELECT sum(price * ({all}))::DOUBLE / nullif(sum(CASE WHEN price IS NOT NULL THEN {all} END), 0)
  AS price,
  sum(CASE WHEN cash THEN ({all}) ELSE 0 END)::DOUBLE / nullif(sum({all}), 0) AS cash
FROM advice_cell WHERE cluster = $1 AND list_contains($2::VARCHAR[], node)
"""


def fewer_nodes(site: Site, replay: Replayed) -> Draft | None:
    """The most nodes that can go while the goals hold; None where none, or too few of them, or
    where none of them can be given back.

    Only on a replay that repeats what happened: a promise that waits stay short needs one. Where no
    queue formed there is nothing to repeat; then only as many as leave nobody waiting, which no
    policy would change.
    """
    from scheduler_advisor.search.nodes import to_give_back

    found = replay.found
    if found is None or not (replay.grade.promises or _no_queue(replay)):
        return None
    alone = _no_queue(replay)
    points = [each for each in found.nodes if not alone or each.candidate.found.p95_wait_s <= SHORT]
    point = to_give_back(points)
    fleet = len(found.bench.past.cluster)
    if point is None or -point.nodes < RULE.values(site.goals)["least_share"] * fleet:
        return None
    gone = list(found.bench.past.cluster.names[point.nodes :])
    row = site.rows(_PRICE.format(all=" + ".join(CLASSES)), [replay.cluster, gone])[0]
    if not row["cash"]:
        return None
    return _draft(site, replay, found, point, (row["price"], row["cash"]))


def _no_queue(replay: Replayed) -> bool:
    known = replay.calibration
    return known is not None and replay.grade == "none" and known.ungraded == "no_queue"


def _draft(
    site: Site, replay: Replayed, found: Found, point: NodesPoint,
    priced: tuple[float | None, float],
) -> Draft:  # fmt: skip
    gone = list(found.bench.past.cluster.names[point.nodes :])
    gpus = int(found.bench.past.cluster.gpus[point.nodes :].sum())
    price, cash = priced
    hours = gpus * HOURS * 7.0
    worst = worst_class(point)
    return Draft(
        kind=RULE.kind, cluster=replay.cluster, subject=replay.cluster, owner=Owner(),
        duty=Duty.PLATFORM,
        params={
            "nodes": -point.nodes, "gpus": gpus, "fleet": len(found.bench.past.cluster),
            "grade": grade_said(replay.grade.value), "cash_ratio": cash,
            "classes": classes_text(found, point), "worst": worst.name if worst else "–",
            "names": f"{gone[0]} – {gone[-1]}",
        },
        parts=_parts(found, replay.cluster, gpus, (price, cash)), current=[],
        figures=(
            modelled("mean_wait_before", found.today.mean_wait_s, Unit.SECONDS),
            modelled("mean_wait_after", point.candidate.found.mean_wait_s, Unit.SECONDS),
        ),
        samples=int(found.bench.past.judged.sum()),
        assumptions=(
            Assumption("same_arrivals", "", True),
            Assumption("give_back", ", ".join(site.goals.capacity.give_back) or "–",
                       not site.goals.capacity.give_back),
        ),
        replay=_replayed(replay, found, point, hours, price),
    )  # fmt: skip


def _parts(found: Found, cluster: str, gpus: int, price: tuple[float | None, float]) -> list[Part]:
    """All hours of these GPUs on every day of the window; cash as far as they can be given back."""
    past = found.bench.past
    each = gpus * HOURS * 3_600_000_000
    parts = []
    for day in range(max(1, round(past.days))):
        for cash, share in ((False, 1 - price[1]), (True, price[1])):
            micro = round(each * share)
            if not micro:
                continue
            cost = None if price[0] is None else Decimal(repr(price[0])) * micro / 3_600_000_000
            parts.append(
                Part(claim=f"nodes:{cluster}", day=past.day(day).date(), micro_gpu_s=micro,
                     cost=cost, cash=cash, cluster=cluster)
            )  # fmt: skip
    return parts


def worst_class(point: NodesPoint) -> ClassWait | None:
    """The class whose p95 wait grows most."""
    today = {each.name: each.p95_s or 0.0 for each in point.candidate.today.class_waits}
    return max(
        (each for each in point.candidate.found.class_waits if each.p95_s is not None),
        key=lambda each: (each.p95_s or 0.0) - today[each.name],
        default=None,
    )


def classes_text(found: Found, point: NodesPoint) -> str:
    """``urgent 2 -> 4 min (goal 15 min); ...``: p95 waits by class, before and after."""
    from scheduler_advisor.durations import duration_text

    said = []
    today = {each.name: each for each in found.today.class_waits}
    for each in point.candidate.found.class_waits:
        before = duration_text(today[each.name].p95_s)
        goal = "" if each.goal_s is None else f" (≤ {duration_text(each.goal_s)})"
        said.append(f"{each.name} {before} → {duration_text(each.p95_s)}{goal}")
    return "; ".join(said) or "–"


def _replayed(
    replay: Replayed, found: Found, point: NodesPoint, hours: float, price: float | None
) -> FromReplay:
    amount = (hours, hours, hours)
    cost = None if price is None else (hours * price,) * 3
    each = point.candidate
    return FromReplay(
        grade=replay.grade.value, promises=True, gain="nodes", gpu_hours=amount,
        cost=cost, shifts=shifts(found, each), classes=classes(each), bounds=(),
        tried=tuple(tried_json(found)), handover={},
        blast_gpus=(each.today.blast_gpus, each.found.blast_gpus), worth_nodes=float(point.nodes),
        measure="nodes", measured=amount,
    )  # fmt: skip
