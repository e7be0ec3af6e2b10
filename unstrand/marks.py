"""Marks from inside a training loop; standard library only, and never in the way of the training.

    from unstrand.marks import checkpoint, restore

    with restore():
        model.load_state_dict(torch.load(path))
    ...
    with checkpoint():
        torch.save(model.state_dict(), path)

The service's address comes from ``server`` or UNSTRAND_SERVER, the job from ``job`` or
SLURM_JOB_ID. Only the first rank marks. A block that raises gets no end mark: what it wrote is not
durable. When the service does not answer within two seconds, a warning is logged and that is all.
"""

from __future__ import annotations

import json
import logging
import os
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

log = logging.getLogger(__name__)

WITHIN_S = 2.0
_RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")


@contextmanager
def checkpoint(
    *, job: str | None = None, cluster: str | None = None, server: str | None = None
) -> Iterator[None]:
    """Mark the beginning and, if the block succeeds, the end of writing a checkpoint."""
    with _marked("checkpoint", job, cluster, server):
        yield


@contextmanager
def restore(
    *, job: str | None = None, cluster: str | None = None, server: str | None = None
) -> Iterator[None]:
    """Mark the beginning and, if the block succeeds, the end of reading a checkpoint back."""
    with _marked("restore", job, cluster, server):
        yield


def mark(
    kind: str, *, job: str | None = None, cluster: str | None = None, server: str | None = None
) -> bool:
    """Send one mark such as ``checkpoint-end``; whether the service took it."""
    environment = os.environ
    address = server or environment.get("UNSTRAND_SERVER")
    job_id = job or environment.get("SLURM_JOB_ID")
    if not _first_rank(environment):
        return False
    if address is None or job_id is None:
        log.warning("no mark %s: set UNSTRAND_SERVER, and name the job outside of Slurm", kind)
        return False
    body = {"kind": kind, "job_id": job_id, "cluster": cluster}
    return _send(f"{address.rstrip('/')}/api/v1/marks", body)


@contextmanager
def _marked(what: str, job: str | None, cluster: str | None, server: str | None) -> Iterator[None]:
    mark(f"{what}-begin", job=job, cluster=cluster, server=server)
    yield
    mark(f"{what}-end", job=job, cluster=cluster, server=server)


def _first_rank(environment: Mapping[str, str]) -> bool:
    ranks = [environment[name] for name in _RANKS if name in environment]
    return not ranks or ranks[0] == "0"


def _send(url: str, body: Mapping[str, str | None]) -> bool:
    if not url.startswith(("http://", "https://")):
        log.warning("no mark: %s is no http address", url)
        return False
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"content-type": "application/json"}, method="POST"
    )
    try:
        with urllib.request.urlopen(request, timeout=WITHIN_S) as answer:
            return bool(200 <= answer.status < 300)
    except (OSError, ValueError) as error:
        log.warning("the mark %s was not taken: %s", body["kind"], error)
        return False
