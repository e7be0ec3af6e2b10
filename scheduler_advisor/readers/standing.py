"""What a replay of a window begins with: the queue and the running jobs as they really stood."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from scheduler_advisor.engine.jobs import Jobs

Ints = NDArray[np.int64]


def as_it_stood(jobs: Jobs, wait: Ints, since: int) -> tuple[Jobs, Ints]:
    """Jobs and their waits, as they stood at second ``since``.

    What ran then holds its GPUs from when it really started. What waited then waits until
    ``since``: most of those that it waited for are not replayed, so that it would start before.
    """
    early = jobs.submit < since
    if not early.any():
        return jobs, wait
    start = jobs.submit + wait
    ran = early & (start < since)
    submit = np.where(ran, start, jobs.submit)
    eligible = np.maximum(jobs.eligible, np.where(early & ~ran, since, submit))
    order = np.argsort(submit, kind="stable")
    moved = jobs.changed(submit=submit, eligible=np.where(ran, submit, eligible))
    return moved, np.where(ran, 0, wait)[order]


def on_their_nodes(jobs: Jobs, since: int, held: Sequence[tuple[str, str, int]]) -> Jobs:
    """The jobs, those that began before ``since`` with the nodes that they held.

    ``held``: job, node and GPUs of each holding. Nodes with more GPUs come first: the last of a
    job may hold its rest.
    """
    ran = np.flatnonzero((jobs.submit < since) & (jobs.eligible < since))
    place = {str(jobs.job_id[job]): job for job in ran.tolist()}
    stood: dict[int, list[str]] = {}
    for name, node, _ in sorted(held, key=lambda each: (-each[2], each[1])):
        if name in place:
            stood.setdefault(place[name], []).append(node)
    if not stood:
        return jobs
    column = [""] * len(jobs)
    for job, nodes in stood.items():
        column[job] = "|".join(nodes)
    return jobs.changed(stood_on=column)
