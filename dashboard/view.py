"""What the address says is shown: window, cluster, team, user, currency, time zone, language.

The address is the only state, so a link shows the same thing to the next person. Days are calendar
days of the time zone; the window runs from the first moment of ``first`` to the end of ``last``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import TypeVar
from zoneinfo import ZoneInfo

from dashboard.palette import CLASSES
from dashboard.words import LANGUAGES

ZONES = ("UTC", "Europe/Berlin", "Asia/Seoul", "America/New_York", "America/Los_Angeles")
DEFAULT_DAYS = 28
LONGEST_DAYS = 400
MOST_PER_NODE = 64
MOST_NODES = 4096
MOST_HOURS_BACK = 168
T = TypeVar("T")
D = TypeVar("D")


@dataclass(frozen=True, slots=True)
class Shape:
    """A job of ``gpus`` GPUs on each of ``nodes`` nodes; ``8x2`` in the address."""

    gpus: int
    nodes: int

    @classmethod
    def read(cls, raw: str) -> Shape:
        """``8x2``; ValueError for what is none."""
        gpus, nodes = (int(part) for part in raw.split("x"))
        if not (1 <= gpus <= MOST_PER_NODE and 1 <= nodes <= MOST_NODES):
            raise ValueError(raw)
        return cls(gpus, nodes)

    def __str__(self) -> str:
        return f"{self.gpus}x{self.nodes}"


@dataclass(frozen=True, slots=True)
class View:
    """One view of the facts; ``remarks`` name what the address asked for and cannot have."""

    first: date
    last: date
    zone: str = "UTC"
    language: str = "en"
    cluster: str | None = None
    team: str | None = None
    project: str | None = None
    user: str | None = None
    currency: str | None = None
    job: str | None = None
    ledger_class: str | None = None
    shape: Shape | None = None
    hours_back: int = 0
    queue: str | None = None
    state: str | None = None
    remarks: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    @property
    def since(self) -> datetime:
        """The first instant of the window, UTC."""
        return _midnight(self.first, self.zone)

    @property
    def until(self) -> datetime:
        """The first instant after the window, UTC."""
        return _midnight(self.last + timedelta(days=1), self.zone)

    @property
    def days(self) -> int:
        """Calendar days in the window."""
        return (self.last - self.first).days + 1

    def address(self, **changes: str | None) -> dict[str, str]:
        """The query of the address of this view, with ``changes``."""
        query = {
            "from": self.first.isoformat(),
            "to": self.last.isoformat(),
            "tz": self.zone,
            "lang": self.language,
            "cluster": self.cluster,
            "team": self.team,
            "project": self.project,
            "user": self.user,
            "currency": self.currency,
            "job": self.job,
            "class": self.ledger_class,
            "shape": None if self.shape is None else str(self.shape),
            "queue": self.queue,
            "state": self.state,
            "back": str(self.hours_back) if self.hours_back else None,
        } | changes
        return {name: value for name, value in query.items() if value is not None}


def read_view(query: Mapping[str, str], known_until: datetime | None, today: date) -> View:
    """The view that ``query`` asks for; without one, the last four weeks of known facts."""
    remarks: list[tuple[str, str]] = []
    zone = _one_of("tz", query, _zone, "UTC", remarks)
    language = _one_of("lang", query, _language, "en", remarks)
    last = _last_known_day(known_until, zone, today)
    first = last - timedelta(days=DEFAULT_DAYS - 1)
    asked_first = _one_of("from", query, date.fromisoformat, first, remarks)
    asked_last = _one_of("to", query, date.fromisoformat, last, remarks)
    if not 0 <= (asked_last - asked_first).days < LONGEST_DAYS:
        remarks.append(("from..to", f"{asked_first}..{asked_last}"))
        asked_first, asked_last = first, last
    return View(
        asked_first,
        asked_last,
        zone,
        language,
        cluster=query.get("cluster") or None,
        team=query.get("team") or None,
        project=query.get("project") or None,
        user=query.get("user") or None,
        currency=query.get("currency") or None,
        job=query.get("job") or None,
        ledger_class=_one_of("class", query, _class, None, remarks),
        shape=_one_of("shape", query, Shape.read, None, remarks),
        queue=query.get("queue") or None,
        state=query.get("state") or None,
        hours_back=_one_of("back", query, _hours_back, 0, remarks),
        remarks=tuple(remarks),
    )


def _one_of(
    name: str,
    query: Mapping[str, str],
    parse: Callable[[str], T],
    default: D,
    remarks: list[tuple[str, str]],
) -> T | D:
    raw = query.get(name)
    if raw is None:
        return default
    try:
        return parse(raw)
    except (ValueError, KeyError, OSError):
        remarks.append((name, raw))
        return default


def _zone(raw: str) -> str:
    ZoneInfo(raw)
    return raw


def _language(raw: str) -> str:
    if raw not in LANGUAGES:
        raise ValueError(raw)
    return raw


def _class(raw: str) -> str:
    if raw not in CLASSES:
        raise ValueError(raw)
    return raw


def _hours_back(raw: str) -> int:
    """Hours before the end of the window at which a page looks."""
    if not 0 <= int(raw) <= MOST_HOURS_BACK:
        raise ValueError(raw)
    return int(raw)


def _midnight(day: date, zone: str) -> datetime:
    return datetime.combine(day, time(), ZoneInfo(zone)).astimezone(UTC)


def _last_known_day(known_until: datetime | None, zone: str, today: date) -> date:
    if known_until is None:
        return today
    return (known_until - timedelta(microseconds=1)).astimezone(ZoneInfo(zone)).date()
