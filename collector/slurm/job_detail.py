"""``scontrol show job -d -o``: which node gave a running job how many GPUs."""

from __future__ import annotations

import re

from collector.slurm import hostlist
from collector.slurm.gres import gpus_by_type
from collector.slurm.refusal import MalformedError, refusal
from collector.slurm.split import Share

_REMEDY = "Ask with `SLURM_TIME_FORMAT=%s scontrol show job -d -o`"
_ID = re.compile(r"JobId=(\d+) ")
_TIMES = re.compile(r" (SubmitTime|StartTime)=(\d+) ")
_PART = re.compile(r" Nodes=(\S+) CPU_IDs=(\S+) Mem=(\d+) GRES=(\S*)")


def parse(source: str, text: str) -> dict[str, list[Share]]:
    """By run id, what each running job holds on each of its nodes; jobs without detail are absent.

    The run id is that of `run_rules.settled`: job id, submit and start.
    """
    found: dict[str, list[Share]] = {}
    for line, record in enumerate(text.splitlines(), start=1):
        job, times = _ID.match(record), dict(_TIMES.findall(record))
        parts = _PART.findall(record)
        if job is None or len(times) < 2 or not parts or " JobState=RUNNING " not in record:
            continue
        try:
            shares = [share for part in parts for share in _shares(*part)]
        except MalformedError as error:
            raise refusal(source, line, str(error), _REMEDY) from error
        found[f"{job.group(1)}.{times['SubmitTime']}.{times['StartTime']}"] = shares
    return found


def _shares(nodes: str, cpu_ids: str, mem_mib: str, gres: str) -> list[Share]:
    """What the text says of each node of the list alike."""
    cpus = len(hostlist.expand(f"[{cpu_ids}]"))
    gpus = gpus_by_type(gres) or {None: 0}
    shares = []
    for node in hostlist.expand(nodes):
        for place, (kind, count) in enumerate(gpus.items()):
            cpu, mem = (cpus, int(mem_mib)) if place == 0 else (0, 0)
            shares.append(Share(node, kind, count, cpu, mem))
    return shares
