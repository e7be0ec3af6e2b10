"""Personal notes: to the owner only, at most one in seven days, never on a holiday, off unless
asked for, and first as a dry run."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from collector.store import Work
from scheduler_advisor.delivery.deliver import NUDGE
from scheduler_advisor.delivery.mail import note_message
from scheduler_advisor.delivery.outbox import Parcel, parcel_key, put
from scheduler_advisor.delivery.receivers import Receivers
from scheduler_advisor.goals import Goals
from scheduler_advisor.messages import Words
from scheduler_advisor.report.saved import newest_report, recommendations_of

log = logging.getLogger(__name__)

OF_USE = timedelta(days=2)  # a note that arrives later speaks of what has passed
FRESH = timedelta(days=8)  # an older report is no reason to write to anybody
MOST_ITEMS = 5
# One row = a note with what became of it.
_WRITTEN = """
SELECT n.owner, n.ts, n.dry_run, n.subject, n.text, n.recommendation_ids,
  coalesce(bool_or(d.delivered), false) AS delivered, arg_max(d.error, d.ts) AS error
FROM nudge n LEFT JOIN delivery d USING (dedupe_key) GROUP BY ALL ORDER BY n.ts DESC, n.owner
LIMIT ?
"""


@dataclass(frozen=True, slots=True)
class Nudge:
    """One note as it was written down; ``dry_run``: not sent."""

    owner: str
    subject: str
    text: str
    recommendation_ids: tuple[str, ...]
    dry_run: bool


def nudge(work: Work, goals: Goals, receivers: Receivers | None, now: datetime) -> list[Nudge]:
    """Write down the notes that are due and put those that are no dry run into the outbox.

    Wants a transaction around it. Nothing while they are off, on a holiday, or without a fresh
    report. Until a dry run of an earlier day is on record, this one is a dry run.
    """
    wish, today = goals.nudges, _day(now, goals)
    if not wish.enabled or rests(goals, now):
        return []
    report = newest_report(work)
    if report is None or now - report["ts"] > FRESH:
        return []
    language = receivers.nudges.language if receivers and receivers.nudges else None
    words = Words(language or goals.report.language)
    items = recommendations_of(work, report["report_id"], now, words.language)
    dry = wish.dry_run or not _tried_before(work, goals, today)
    if not dry and (receivers is None or receivers.nudges is None):
        log.warning("nudges are on, but the delivery file has no [nudges]: nothing is sent")
        return []
    found = []
    for owner, own in sorted(_by_owner(items).items()):
        last = _last(work, owner, dry_run=dry)
        if last is not None and now - last < timedelta(days=wish.min_days_between):
            continue
        if not dry and receivers is not None and receivers.address_of(owner) is None:
            log.warning("no address is known for %s: no note is sent", owner)
            continue
        subject, text = note_text(owner, own[:MOST_ITEMS], words)
        ids = tuple(item["id"] for item in own[:MOST_ITEMS])
        made = Nudge(owner, subject, text, ids, dry)
        _write(work, report, made, words.language, now)
        if not dry and receivers is not None:
            _post(work, report, made, receivers, now)
        found.append(made)
    return found


def rests(goals: Goals, now: datetime) -> bool:
    """Whether nobody is written to today, in the report's time zone."""
    return _day(now, goals) in goals.nudges.holidays


def nudges_written(work: Work, limit: int = 100) -> list[dict[str, Any]]:
    """What was written to whom, the newest first, and whether it has arrived."""
    return work.rows(_WRITTEN, [limit])


def _by_owner(items: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """What each person could do by themselves, of what is open and worth something."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for item in items:
        owner = item["owner"]
        worth = item["saving"]["gpu_hours"]
        open_ = item["state"] in ("new", "accepted")
        if owner["duty"] == "owner" and owner["user"] and worth and open_:
            found[owner["user"]].append(item)
    return found


def _write(work: Work, report: dict[str, Any], made: Nudge, language: str, now: datetime) -> None:
    work.append(
        "nudge",
        {"owner": [made.owner], "ts": [now], "cluster": [report["cluster"]],
         "report_id": [report["report_id"]], "dedupe_key": [_key(made, now)],
         "recommendation_ids": [list(made.recommendation_ids)], "language": [language],
         "subject": [made.subject], "text": [made.text], "dry_run": [made.dry_run]},
    )  # fmt: skip


def _post(
    work: Work, report: dict[str, Any], made: Nudge, receivers: Receivers, now: datetime
) -> None:
    key, server = _key(made, now), receivers.nudge_mail(made.owner)
    content = bytes(note_message(server, made.subject, made.text, now, key))
    put(work, Parcel(key, report["report_id"], NUDGE, made.owner, content), now, OF_USE)


def _key(made: Nudge, now: datetime) -> str:
    return parcel_key(NUDGE, made.owner, now.isoformat(), made.dry_run)


def note_text(owner: str, items: Sequence[dict[str, Any]], words: Words) -> tuple[str, str]:
    """Subject and text: what was seen, what could be done, and that nothing happens by itself."""
    subject = words.say("nudge.subject", count=len(items))
    lines = [words.say("nudge.hello", owner=owner), "", words.say("nudge.intro"), ""]
    for place, item in enumerate(items, 1):
        lines += [f"{place}. {item['title']}", f"   {item['why']}", f"   {item['action']}"]
        for job in item["evidence"]["examples"][:1]:
            lines.append(f"   {job['command']}")
        lines.append("")
    return subject, "\n".join([*lines, words.say("nudge.outro"), "", words.say("nudge.often")])


def _last(work: Work, owner: str, *, dry_run: bool) -> datetime | None:
    rows = work.rows(
        "SELECT max(ts) AS ts FROM nudge WHERE owner = ? AND dry_run = ?", [owner, dry_run]
    )
    last: datetime | None = rows[0]["ts"]
    return last


def _tried_before(work: Work, goals: Goals, today: date) -> bool:
    first = work.rows("SELECT min(ts) AS ts FROM nudge WHERE dry_run")[0]["ts"]
    return first is not None and _day(first, goals) < today


def _day(moment: datetime, goals: Goals) -> date:
    return moment.astimezone(ZoneInfo(goals.report.time_zone)).date()
