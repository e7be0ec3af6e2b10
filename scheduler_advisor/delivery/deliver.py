"""Send a report to all receivers: each once per window, retried, every attempt kept as a row."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from collector.store import Store
from scheduler_advisor.delivery.mail import send_mail
from scheduler_advisor.delivery.receivers import Receivers
from scheduler_advisor.delivery.webhook import RetryableError, send_webhook
from scheduler_advisor.errors import DeliveryError
from scheduler_advisor.report.contents import WeeklyReport

log = logging.getLogger(__name__)

# Before each attempt. What fails for longer is logged; `unstrand advise --deliver` sends it then.
WAITS_S = (0.0, 5.0, 30.0)


@dataclass(frozen=True, slots=True)
class Delivered:
    """What became of one receiver; ``error`` None = delivered, now or before."""

    channel: str
    receiver: str
    attempts: int
    error: str | None


def deliver(
    store: Store,
    report: WeeklyReport,
    receivers: Receivers,
    *,
    clock: Callable[[], datetime],
    sleep: Callable[[float], None] = time.sleep,
) -> list[Delivered]:
    """Send to everybody who has not got the report of this window yet."""
    results = []
    for channel, name, send in _all(receivers, report):
        key = dedupe_key(report, channel, name)
        if store.value("SELECT count(*) FROM delivery WHERE dedupe_key = ? AND delivered", [key]):
            results.append(Delivered(channel, name, 0, None))
            continue
        results.append(_tried(store, report, (channel, name, key), send, clock=clock, sleep=sleep))
    return results


def dedupe_key(report: WeeklyReport, channel: str, receiver: str) -> str:
    """The same for every report over the same window of the same cluster."""
    window = report.window
    text = f"{channel}|{receiver}|{report.cluster}|{window.since}|{window.until}"
    return hashlib.sha256(text.encode()).hexdigest()[:24]


_Send = Callable[[], None]


def _all(receivers: Receivers, report: WeeklyReport) -> Iterator[tuple[str, str, _Send]]:
    for hook in receivers.webhook:
        yield "webhook", hook.name, partial(send_webhook, hook, report)
    for mail in receivers.mail:
        yield "mail", mail.name, partial(send_mail, mail, report)


def _tried(
    store: Store,
    report: WeeklyReport,
    receiver: tuple[str, str, str],
    send: _Send,
    *,
    clock: Callable[[], datetime],
    sleep: Callable[[float], None],
) -> Delivered:
    channel, name, key = receiver
    said: str | None = None
    for attempt, wait_s in enumerate(WAITS_S, 1):
        sleep(wait_s)
        said, again = _once(send)
        with store.work() as work:
            work.append(
                "delivery",
                {"report_id": [report.report_id], "ts": [clock()], "channel": [channel],
                 "receiver": [name], "dedupe_key": [key], "attempt": [attempt],
                 "delivered": [said is None], "error": [said]},
            )  # fmt: skip
        if said is None or not again:
            return Delivered(channel, name, attempt, said)
        log.warning("%s; attempt %d of %d", said, attempt, len(WAITS_S))
    return Delivered(channel, name, len(WAITS_S), said)


def _once(send: _Send) -> tuple[str | None, bool]:
    """The error's words, if any, and whether another try may help."""
    try:
        send()
    except RetryableError as error:
        return str(error), True
    except DeliveryError as error:
        return str(error), False
    return None, False
