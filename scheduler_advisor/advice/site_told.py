"""What a change means at this site: whom moves leave alone, how many GPUs are slices when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scheduler_advisor.advice.draft import Phrase

if TYPE_CHECKING:
    from scheduler_advisor.past import Past
    from scheduler_advisor.search.candidate import Candidate

HALF_DAY = 12
AT = 0.95  # of the days: what is cut at an hour suffices on nineteen of twenty
SAME = 1  # GPUs by which day and night may differ and be one layout


def of_site(past: Past, each: Candidate) -> list[Phrase]:
    """Sentences for the changes that need them."""
    parts = {part.value for part in each.parts}
    found = [never_moved(past)] if "defrag" in parts else []
    mig = any(change.name == "share_mig" for change in each.changes)
    return [phrase for phrase in (*found, slices(past) if mig else None) if phrase is not None]


def never_moved(past: Past) -> Phrase | None:
    """Jobs without evidence that they go on after a stop; None where all have it."""
    import numpy as np

    jobs = past.jobs
    hours = past.gpus_held * jobs.run
    own = past.judged & (jobs.preemptible == 0) & (jobs.gpus > 0)
    if not own.any():
        return None
    by_team = np.bincount(jobs.team.codes[own], hours[own], len(jobs.team.names))
    team = jobs.team.names[int(np.argmax(by_team))] or "?"
    share = float(hours[own].sum() / max(hours[past.judged].sum(), 1))
    return Phrase("change_how.moves_never", {"jobs": int(own.sum()), "share": share, "team": team})


def slices(past: Past) -> Phrase | None:
    """A layout for the busiest twelve hours of the day and one for the rest, from the parts of GPUs
    that really ran; None without real starts, or without such jobs."""
    by_hour = slices_by_hour(past)
    if by_hour is None:
        return None
    loads = [sum(by_hour[(hour + step) % 24] for step in range(HALF_DAY)) for hour in range(24)]
    since = loads.index(max(loads))
    until = (since + HALF_DAY) % 24
    busy = max(by_hour[(since + step) % 24] for step in range(HALF_DAY))
    rest = max(by_hour[(until + step) % 24] for step in range(HALF_DAY))
    if abs(busy - rest) <= SAME:
        return Phrase("change_how.slices_always", {"busy": max(busy, rest)})
    hours = {"since": f"{since:02d}", "until": f"{until:02d}"}
    return Phrase("change_how.slices_hours", {**hours, "busy": busy, "rest": rest})


def slices_by_hour(past: Past) -> list[int] | None:
    """GPUs that the parts held at each hour of the day (UTC) filled, on nineteen days of twenty."""
    import numpy as np

    from scheduler_advisor.integrals import integral

    own = past.jobs.gpu_milli > 0
    if past.wait_s is None or not own.any():
        return None
    edges = np.arange(past.since, past.until + 1, 3600, dtype=float)
    size = past.gpus_held[own]
    held = integral(past.real_start[own], size, edges) - integral(past.real_end[own], size, edges)
    gpus = np.diff(held) / 3600
    hour = ((edges[:-1] + past.origin_s) // 3600 % 24).astype(int)
    return [int(np.ceil(np.quantile(gpus[hour == at], AT))) if (hour == at).any() else 0
            for at in range(24)]  # fmt: skip
