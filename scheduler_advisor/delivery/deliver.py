"""Send a report to all receivers: each once per window, retried now and over later runs, every
attempt kept as a row."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from collector.store import Store
from scheduler_advisor.delivery.mail import message, send_mail
from scheduler_advisor.delivery.outbox import (
    Parcel,
    delivered,
    note_attempt,
    parcel_key,
    put,
    waiting,
)
from scheduler_advisor.delivery.receivers import Mail, Receivers
from scheduler_advisor.delivery.webhook import RetryableError, payload, send_webhook
from scheduler_advisor.errors import DeliveryError
from scheduler_advisor.report.contents import WeeklyReport

log = logging.getLogger(__name__)

# Before each attempt of the first round. What fails for longer waits in the outbox: see `retry`.
WAITS_S = (0.0, 5.0, 30.0)
NUDGE = "nudge"


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
    for parcel in _parcels(report, receivers):
        with store.work() as work, work.transaction():
            if delivered(work, parcel.key):
                results.append(Delivered(parcel.channel, parcel.receiver, 0, None))
                continue
            put(work, parcel, clock())
        results.append(_first_round(store, parcel, receivers, clock=clock, sleep=sleep))
    return results


def retry(
    store: Store, receivers: Receivers, now: datetime, *, rest: bool = False
) -> list[Delivered]:
    """One more attempt for everything that is due again; personal notes ``rest`` on a holiday.

    A receiver that is in the file no more is left alone.
    """
    with store.work() as work:
        due = [each for each in waiting(work, now) if each.next_at <= now]
    results = []
    for each in due:
        resting = rest and each.parcel.channel == NUDGE
        if resting or not receivers.knows(each.parcel.channel, each.parcel.receiver):
            continue
        error, _ = _once(each.parcel, receivers)
        with store.work() as work:
            number = note_attempt(work, each.parcel, now, error)
        results.append(Delivered(each.parcel.channel, each.parcel.receiver, number, error))
    return results


def _parcels(report: WeeklyReport, receivers: Receivers) -> list[Parcel]:
    window = report.window

    def parcel(channel: str, name: str, content: bytes) -> Parcel:
        # The same for every report over the same window of the same cluster.
        key = parcel_key(channel, name, report.cluster, window.since, window.until)
        return Parcel(key, report.report_id, channel, name, content)

    hooks = [parcel("webhook", hook.name, payload(report, hook.language))
             for hook in receivers.webhook]  # fmt: skip
    return hooks + [parcel("mail", mail.name, bytes(message(mail, report)))
                    for mail in receivers.mail]  # fmt: skip


def _first_round(
    store: Store,
    parcel: Parcel,
    receivers: Receivers,
    *,
    clock: Callable[[], datetime],
    sleep: Callable[[float], None],
) -> Delivered:
    said: str | None = None
    for attempt, wait_s in enumerate(WAITS_S, 1):
        sleep(wait_s)
        said, again = _once(parcel, receivers)
        with store.work() as work:
            note_attempt(work, parcel, clock(), said)
        if said is None or not again:
            return Delivered(parcel.channel, parcel.receiver, attempt, said)
        log.warning("%s; attempt %d of %d", said, attempt, len(WAITS_S))
    return Delivered(parcel.channel, parcel.receiver, len(WAITS_S), said)


def _once(parcel: Parcel, receivers: Receivers) -> tuple[str | None, bool]:
    """The error's words, if any, and whether another try at once may help."""
    try:
        _send(parcel, receivers)
    except RetryableError as error:
        return str(error), True
    except DeliveryError as error:
        return str(error), False
    return None, False


def _send(parcel: Parcel, receivers: Receivers) -> None:
    if parcel.channel == "webhook":
        [hook] = [hook for hook in receivers.webhook if hook.name == parcel.receiver]
        send_webhook(hook, parcel.content)
        return
    server: Mail
    if parcel.channel == NUDGE:
        server = receivers.nudge_mail(parcel.receiver)
    else:
        [server] = [mail for mail in receivers.mail if mail.name == parcel.receiver]
    send_mail(server, parcel.content)
