"""What is due for delivery, looked at again and again: reports that did not arrive, and notes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from collector.store import Store
from scheduler_advisor.delivery.deliver import retry
from scheduler_advisor.delivery.nudges import nudge, rests
from scheduler_advisor.delivery.receivers import load_receivers
from scheduler_advisor.goals import load_goals

log = logging.getLogger(__name__)

LOOK_EVERY = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Deliveries:
    """Over one store; the files are read at each look, so that a mended one counts at once."""

    store: Store
    clock: Callable[[], datetime]
    goals_file: Path | None = None
    delivery_file: Path | None = None

    def look(self) -> None:
        """Write the personal notes that are due, then send everything that is due."""
        goals, now = load_goals(self.goals_file), self.clock()
        receivers = None if self.delivery_file is None else load_receivers(self.delivery_file)
        with self.store.work() as work, work.transaction():
            for each in nudge(work, goals, receivers, now):
                kind = "a dry run of a note" if each.dry_run else "a note"
                log.info("%s to %s: %s", kind, each.owner, each.subject)
        if receivers is None:
            return
        for result in retry(self.store, receivers, now, rest=rests(goals, now)):
            if result.error is None:
                log.info("%s: delivered at attempt %d", result.receiver, result.attempts)
            else:
                log.error("%s; attempt %d", result.error, result.attempts)
