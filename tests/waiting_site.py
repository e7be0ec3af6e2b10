"""A site on which whole-node jobs wait behind small ones that are spread, over weeks.

One cluster ``c`` of two nodes with eight GPUs. A job comes every two hours; every eighth asks for
a whole node and waited six hours in reality, all others started at once: the real mean wait is
2,700 s exactly.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from collector.model import Allocation, FactWindow, JobRun, Node

T0 = datetime(2026, 10, 5, tzinfo=UTC)
DAYS = 14
UNTIL = T0 + timedelta(days=DAYS)
SAME = {"cluster": "c", "source": "test"}
HOUR = timedelta(hours=1)


def works(since=T0, days=DAYS, *, every_h=2.0, small_h=9.0, gpus=1, account="a", first=0):
    """(number, submit, start, end, gpus, node, account) of the jobs of a period."""
    found = []
    for number in range(first, first + round(days * 24 / every_h)):
        submit = since + (number - first) * every_h * HOUR
        whole = number % 8 == 7
        start = submit + (6 * HOUR if whole else 0 * HOUR)
        end = start + (5 if whole else small_h) * HOUR
        held, node = (8, "n1") if whole else (gpus, f"n{number % 2 + 1}")
        found.append((number, submit, start, end, held, node, account))
    return found


def fill(store, jobs=None, until=UNTIL):
    """The nodes and the jobs (by default those of the two weeks) as facts."""
    facts = [Node(node=f"n{n}", gpus=8, gpu_model="A100", valid_from=T0, **SAME) for n in (1, 2)]
    facts.append(FactWindow(kind="scheduler", since=T0, until=until, **SAME))
    for number, submit, start, end, gpus, node, account in jobs or works():
        run_id = f"{number}.1"
        facts.append(
            JobRun(run_id=run_id, job_id=str(number), attempt=1, submit_at=submit, start_at=start,
                   end_at=end, gpus=gpus, state="COMPLETED", limit_s=40_000, account=account,
                   user_name="u", **SAME)
        )  # fmt: skip
        facts.append(
            Allocation(run_id=run_id, node=node, gpus=gpus, share_num=1, share_den=1,
                       start_at=start, end_at=end, **SAME)
        )  # fmt: skip
    with store.work() as work, work.transaction():
        work.append_facts(facts)


def fifo_waits(jobs, nodes=2, size=8):
    """Waits in seconds of first come, first served without backfill, in plain Python: the fullest
    node that fits. Shares no code with the simulator."""
    free, running, waits, clock = [size] * nodes, [], [], None
    for _, submit, start, end, gpus, _, _ in jobs:
        now = submit if clock is None else max(clock, submit)
        while True:
            for entry in [each for each in running if each[0] <= now]:
                free[entry[1]] += entry[2]
                running.remove(entry)
            fits = [n for n in range(nodes) if free[n] >= gpus]
            if fits:
                break
            now = min(each[0] for each in running)
        node = min(fits, key=lambda n: (free[n], n))
        free[node] -= gpus
        running.append((now + (end - start), node, gpus))
        waits.append((now - submit).total_seconds())
        clock = now
    return waits
