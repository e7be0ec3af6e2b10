"""Changes whose numbers come from the past: quiet hours to move work, limits that fill gaps."""

from __future__ import annotations

import numpy as np

from scheduler_advisor.past import Past
from scheduler_advisor.search.catalogue import GANG, PACKING, Change, Part

DAY_HOURS, HOUR_S = 24, 3600
AHEAD_H = 3  # moved work needs quiet for as long: what arrives then finds the room taken
APART_H = 8  # two passes a day stand at least so far apart
QUANTILES = (0.25, 0.5, 0.75)
STEP_S = 300  # limits are written in steps of five minutes
LONGEST_S = 86_400
FIXED = (900, 3600, 14_400)  # limits that the catalogue has
ALIKE = 1.3  # a limit that is nearer to one of these, or to another, is not tried beside it


def site_changes(past: Past) -> list[Change]:
    """All of them."""
    return [*hours_changes(past), *fill_changes(past)]


def quiet_hours(past: Past) -> tuple[int, int]:
    """The hour of the day (UTC) from which the least GPUs are asked for in `AHEAD_H` hours, and the
    next such hour that is `APART_H` away."""
    own = past.judged & (past.jobs.gpus > 0)
    at = (past.jobs.eligible[own] + past.origin_s) // HOUR_S % DAY_HOURS
    asked = np.bincount(at, past.gpus_held[own], DAY_HOURS)
    ahead = sum(np.roll(asked, -hour) for hour in range(AHEAD_H))
    first = int(np.argmin(ahead))
    away = np.abs(np.arange(DAY_HOURS) - first)
    far = np.minimum(away, DAY_HOURS - away) >= APART_H
    return first, int(np.argmin(np.where(far, ahead, np.inf)))


def hours_changes(past: Past) -> list[Change]:
    """Moves of running work in the quietest hour of the day, and in two."""
    one, other = quiet_hours(past)
    both = sorted((one, other))
    return [
        _moves(f"defrag_nightly:{one:02d}", _in_replay(past, [one])),
        _moves(f"defrag_twice:{both[0]:02d}:{both[1]:02d}", _in_replay(past, both)),
    ]


def _in_replay(past: Past, hours: list[int]) -> str:
    """Hours of the day as the replay counts them: from its own second 0."""
    shift = round(past.origin_s % 86_400 / HOUR_S)
    return "|".join(str(hour) for hour in sorted((hour - shift) % DAY_HOURS for hour in hours))


def _moves(name: str, hours: str) -> Change:
    return Change(name, Part.DEFRAGMENTATION, {"defrag": "hours", "defrag.hours": hours}, risk=3,
                  effort="high", disrupts=True, prompted_by=(PACKING, GANG))  # fmt: skip


def fill_changes(past: Past) -> list[Change]:
    """Gaps before a big job filled by jobs of up to a limit: those that a quarter, half and three
    quarters of the smaller jobs keep to."""
    jobs = past.jobs
    most = int(jobs.gpus[past.judged].max(initial=0))
    limits = jobs.limit[past.judged & (jobs.gpus > 0) & (jobs.gpus < most)]
    if not len(limits):
        return []
    found: list[int] = []
    for wanted in np.quantile(limits, QUANTILES):
        seconds = int(np.ceil(wanted / STEP_S)) * STEP_S
        if seconds <= LONGEST_S and all(not _alike(seconds, known) for known in (*FIXED, *found)):
            found.append(seconds)
    return [
        Change(f"fill_upto:{seconds // 60}", Part.BACKFILL,
               {"backfill": "greedy", "backfill.max_limit_s": seconds}, risk=2,
               prompted_by=(GANG,))
        for seconds in found
    ]  # fmt: skip


def _alike(one: int, other: int) -> bool:
    return max(one, other) < ALIKE * min(one, other)
