"""What is to be handed over until it has arrived: the newest for each receiver, tried again with
growing pauses over later runs, also after a restart."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta

from collector.store import Work

# After that many failed attempts, the pause before the next: a rebooting relay is back in minutes,
# a wrong address is mended within a day.
PAUSES = (
    timedelta(minutes=15), timedelta(hours=1), timedelta(hours=4), timedelta(hours=12),
    timedelta(days=1),
)  # fmt: skip
FIRST_ROUND = 3  # attempts within the run that made it
KEPT = timedelta(days=7)  # then the next report comes


@dataclass(frozen=True, slots=True)
class Parcel:
    """Content for one receiver; it holds no secret."""

    key: str
    report_id: str
    channel: str
    receiver: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Waiting:
    """A parcel that has not arrived: attempts so far, the last error, and when it is tried next."""

    parcel: Parcel
    attempts: int
    error: str | None
    next_at: datetime


_UNDELIVERED = """
WITH tried AS (
  SELECT dedupe_key, count(*)::INTEGER AS attempts, bool_or(delivered) AS delivered,
    max(ts) AS last_at, arg_max(error, ts) AS error FROM delivery GROUP BY dedupe_key),
newest AS (
  SELECT * FROM outbox
  QUALIFY row_number() OVER (PARTITION BY channel, receiver ORDER BY ts DESC) = 1)
SELECT o.dedupe_key, o.report_id, o.ts, o.channel, o.receiver, o.content,
  coalesce(t.attempts, 0) AS attempts, coalesce(t.last_at, o.ts) AS last_at, t.error
FROM newest o LEFT JOIN tried t USING (dedupe_key)
WHERE o.expires_at > $1 AND NOT coalesce(t.delivered, false)
ORDER BY o.ts, o.channel, o.receiver
"""


def parcel_key(*parts: object) -> str:
    """The same for the same parts: what it names is delivered once."""
    return hashlib.sha256("|".join(map(str, parts)).encode()).hexdigest()[:24]


def put(work: Work, parcel: Parcel, ts: datetime, kept: timedelta = KEPT) -> None:
    """It is to be delivered, unless it has been put in before."""
    if work.value("SELECT count(*) FROM outbox WHERE dedupe_key = ?", [parcel.key]):
        return
    work.append(
        "outbox",
        {"dedupe_key": [parcel.key], "report_id": [parcel.report_id], "ts": [ts],
         "channel": [parcel.channel], "receiver": [parcel.receiver],
         "content": [parcel.content], "expires_at": [ts + kept]},
    )  # fmt: skip


def delivered(work: Work, key: str) -> bool:
    """Whether it has arrived."""
    return bool(
        work.value("SELECT count(*) FROM delivery WHERE dedupe_key = ? AND delivered", [key])
    )


def waiting(work: Work, now: datetime) -> list[Waiting]:
    """What has not arrived; of several for one receiver only the newest is still worth sending."""
    return [
        Waiting(
            Parcel(row["dedupe_key"], row["report_id"], row["channel"], row["receiver"],
                   row["content"]),
            row["attempts"], row["error"], row["last_at"] + pause(row["attempts"]),
        )
        for row in work.rows(_UNDELIVERED, [now])
    ]  # fmt: skip


def pause(attempts: int) -> timedelta:
    """How long to wait after the last of so many attempts."""
    if attempts == 0:
        return timedelta(0)
    return PAUSES[min(max(attempts - FIRST_ROUND, 0), len(PAUSES) - 1)]


def note_attempt(work: Work, parcel: Parcel, ts: datetime, error: str | None) -> int:
    """Record one attempt; returns its number."""
    before = work.value("SELECT count(*) FROM delivery WHERE dedupe_key = ?", [parcel.key])
    work.append(
        "delivery",
        {"report_id": [parcel.report_id], "ts": [ts], "channel": [parcel.channel],
         "receiver": [parcel.receiver], "dedupe_key": [parcel.key], "attempt": [before + 1],
         "delivered": [error is None], "error": [error]},
    )  # fmt: skip
    return int(before) + 1
