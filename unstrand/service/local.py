"""The GPUs of the service's own machine, recorded without anybody asking."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime

from collector.agent.batch import Batch
from collector.agent.local import LocalCollector, node_name
from collector.agent.picture import Identity
from collector.errors import BatchRefusedError
from unstrand.service.writer import Together, Writer

log = logging.getLogger(__name__)

LOCAL = "local"  # the agent of this machine, and its cluster where the site names none
# The collector's thread waits this long for the commit before it keeps the batch and goes on.
ACKNOWLEDGED_WITHIN_S = 30.0


def local_collector(
    writer: Writer, clock: Callable[[], datetime], *, cluster: str, take: Together
) -> LocalCollector:
    """A collector whose batches go through the writer, each acknowledged after its commit."""

    def deliver(batch: Batch) -> None:
        done = writer.submit_part(batch, take, source=f"the agent of {batch.node}")
        try:
            done.result(ACKNOWLEDGED_WITHIN_S)
        except BatchRefusedError as error:
            # It can never be taken; kept, it would stand in the way of all that follow.
            log.error("a batch of this machine's GPUs was left out: %s", error)

    identity = Identity(cluster, node_name(), agent_id=LOCAL)
    return LocalCollector(deliver, clock=clock, identity=identity)
