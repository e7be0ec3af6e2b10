"""Amounts from rules beside a replay of the same window: what the replay says holds.

A rule adds up hours one by one, as if every one of them could be won; a replay plays the change,
and somebody else takes some of what one lets go. Where the replay tried the action that a rule
advises, its range stands on the card and the rule's amount beside it as the most that it could be.
Where it did not, what a rule wins for jobs that wait is at most what stood free meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from scheduler_advisor.advice.amount import total
from scheduler_advisor.advice.draft import Draft, FromReplay, Keys, NotRecommended
from scheduler_advisor.advice.from_replay import (
    assumptions_of,
    parts_of,
    price_of,
    replayed_saving,
)
from scheduler_advisor.advice.replay_told import grade_said
from scheduler_advisor.advice.same_act import FOR_WAITING, USABLE
from scheduler_advisor.advice.saving import weekly_parts
from scheduler_advisor.figure import Figure, Unit, limit, modelled, observed

if TYPE_CHECKING:
    from scheduler_advisor.advice.rule import Rule
    from scheduler_advisor.advice.site import Site
    from scheduler_advisor.replayed import Replayed
    from scheduler_advisor.search.candidate import Candidate
    from scheduler_advisor.search.search import Found

# Kinds whose amount is capacity that jobs waited for.
WAITED_FOR = ("fragmentation", "gang_wait", "quota_unused")


def held_to_replay(
    site: Site, drafts: Sequence[tuple[Draft, Rule]], replays: Sequence[Replayed]
) -> tuple[list[tuple[Draft, Rule]], list[NotRecommended]]:
    """The same findings with the amounts that the replays bear out, and those they do not."""
    by_cluster = {each.cluster: each for each in replays if each.found is not None}
    kept: list[tuple[Draft, Rule]] = []
    gone: list[NotRecommended] = []
    for draft, rule in drafts:
        known = by_cluster.get(draft.cluster or "")
        if known is None or known.found is None:
            kept.append((draft, rule))
            continue
        held = _held(site, draft, known, known.found)
        if isinstance(held, NotRecommended):
            gone.append(held)
        else:
            kept.append((held, rule))
    return kept, gone


def _held(site: Site, draft: Draft, replay: Replayed, found: Found) -> Draft | NotRecommended:
    same = _tried(found, FOR_WAITING.get(draft.kind))
    if same is not None and same.hours.high <= 0:
        params = {"hours": _weekly(site, draft), "grade": grade_said(replay.grade.value)}
        return NotRecommended(draft.kind, replay.cluster, "replay_wins_nothing", params)
    if same is not None and replay.grade.promises and (hurt := _hurt(same)):
        params = {"hours": _weekly(site, draft), "grade": grade_said(replay.grade.value),
                  "harms": Keys(f"replay.{name}" for name in hurt)}  # fmt: skip
        return NotRecommended(draft.kind, replay.cluster, "replay_harms", params)
    if same is not None:
        return _as_replayed(site, draft, replay, found, same)
    if draft.kind in WAITED_FOR:
        return _at_most_blocked(site, draft, replay, found)
    usable = _tried(found, _act_of(draft))
    if usable is None:
        return draft
    return replace(draft, figures=(*draft.figures, *_asked_for(usable)))


def _hurt(same: Candidate) -> tuple[str, ...]:
    from scheduler_advisor.search.candidate import harmed  # loads the compiler

    return harmed(same.today, same.found)


def _act_of(draft: Draft) -> str | None:
    """The change that would do this for everybody: only advice for everybody is compared."""
    acts = USABLE.get(draft.kind, ())
    return acts[0] if len(acts) == 1 else None


def _tried(found: Found, name: str | None) -> Candidate | None:
    """The change alone, where it was replayed."""
    return next((each for each in found.tried if name is not None and each.name == name), None)


def _weekly(site: Site, draft: Draft) -> float:
    return total(weekly_parts(draft, site.window)).gpu_hours


def _as_replayed(
    site: Site, draft: Draft, replay: Replayed, found: Found, same: Candidate
) -> Draft:
    """The replay's amount in place of the rule's, which is the limit."""
    price = price_of(site, replay.cluster)
    own = replayed_saving(replay, found, same, price[0], {})
    tried = tuple(row for row in own.tried if row["name"] == same.name)
    widest = draft if draft.at_most is None else replace(draft, parts=draft.at_most)
    most = limit("rule_at_most", _weekly(site, widest), Unit.GPU_HOURS)
    return replace(
        draft, parts=parts_of(found, same, price), at_most=None,
        replay=_of_capacity(own, same, tried), figures=(*draft.figures, most),
        assumptions=(*draft.assumptions, *assumptions_of(replay, found, same)),
    )  # fmt: skip


def _of_capacity(
    own: FromReplay, same: Candidate, tried: tuple[Mapping[str, Any], ...]
) -> FromReplay:
    """The card is about capacity, whatever the change alone would be advised for."""
    hours = (same.hours.point, same.hours.low, same.hours.high)
    return replace(
        own, tried=tried, gain="capacity", measure="capacity", measured=hours, not_resumable=None
    )


def _at_most_blocked(site: Site, draft: Draft, replay: Replayed, found: Found) -> Draft:
    """No more than what stood free while jobs waited: really, or replayed where nobody knows."""
    seen = replay.calibration.found if replay.calibration else None
    blocked = seen.real_blocked_gpu_hours if seen else float(found.today.blocked.sum())
    own = sum(part.micro_gpu_s for part in draft.parts) / 3.6e9
    if own <= blocked:
        return draft
    figure = observed if seen else modelled
    return replace(
        draft, parts=[part.scaled(blocked / own) for part in draft.parts],
        figures=(*draft.figures, figure("blocked_in_all", blocked, Unit.GPU_HOURS)),
    )  # fmt: skip


def _asked_for(usable: Candidate) -> Iterator[Figure]:
    """How much of it jobs would have taken that waited, by the replay of the same change."""
    for name, hours in (("asked_low", usable.hours.low), ("asked_high", usable.hours.high)):
        yield modelled(name, max(hours, 0.0), Unit.GPU_HOURS)
