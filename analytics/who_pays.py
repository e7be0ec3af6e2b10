"""The who-pays table: for each class, whose bill it is on, and who bears what nobody holds."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from analytics.audit import note
from analytics.errors import SettingError
from analytics.ledger.classes import LedgerClass
from analytics.ledger.settings import refuse_closed
from collector.store import Work


class Payer(StrEnum):
    """`causer` also means the preemptor's team for `lost`; what has no causer stays with the
    platform."""

    HOLDER = "holder"
    CAUSER = "causer"
    WAITER = "waiter"
    PLATFORM = "platform"


class Unallocated(StrEnum):
    """Who bears what the table leaves with the platform: the platform; everybody, each UTC day in
    proportion to what they pay of that day in that cluster; or whoever caused it, where somebody
    did."""

    PLATFORM = "platform"
    USE = "use"
    CAUSERS = "causers"


UNALLOCATED = "unallocated"
_HOLDER_PAYS = (
    LedgerClass.USED,
    LedgerClass.ALLOCATED_IDLE,
    LedgerClass.ALLOCATED_UNMEASURED,
)
DEFAULT: dict[LedgerClass, Payer] = {
    name: Payer.HOLDER
    if name in _HOLDER_PAYS
    else Payer.CAUSER
    if name is LedgerClass.LOST
    else Payer.PLATFORM
    for name in LedgerClass
}
_HELD_ONLY = frozenset(tuple(LedgerClass)[:6])
_CAUSED = frozenset(
    {
        LedgerClass.LOST,
        LedgerClass.STRANDED_CPU,
        LedgerClass.STRANDED_MEM,
        LedgerClass.STRANDED_SHAPE,
        LedgerClass.STRANDED_TOPOLOGY,
    }
)
_WAITED = frozenset({LedgerClass.GANG_WAIT, LedgerClass.POLICY_BLOCKED})
_ALLOWED = {
    Payer.HOLDER: _HELD_ONLY,
    Payer.CAUSER: _CAUSED,
    Payer.WAITER: _WAITED,
    Payer.PLATFORM: frozenset(LedgerClass),
}


def put_payer(
    work: Work,
    name: LedgerClass,
    payer: Payer,
    *,
    since: datetime,
    actor: str,
    now: datetime | None = None,
) -> None:
    """Change who pays for a class from ``since`` on.

    SettingError where nobody of that kind exists, for a time that is no whole hour, or a day that
    is closed. ``now``: when this was said, for the audit log; without it, ``since``.
    """
    if name not in _ALLOWED[payer]:
        raise SettingError(f"{name} has no {payer}: it cannot pay")
    _put(work, name.value, payer.value, since, actor, now)


def put_unallocated(
    work: Work,
    rule: Unallocated,
    *,
    since: datetime,
    actor: str,
    now: datetime | None = None,
) -> None:
    """Change who bears unallocated cost from ``since`` on; as `put_payer`."""
    _put(work, UNALLOCATED, rule.value, since, actor, now)


def put_rule(
    work: Work, name: str, payer: str, *, since: datetime, actor: str, now: datetime | None = None
) -> None:
    """As people write it: a class and its payer, or `unallocated` and platform, use or causers."""
    if name == UNALLOCATED:
        if payer not in tuple(Unallocated):
            raise SettingError(f"{name} {payer!r}: use {', '.join(Unallocated)}")
        put_unallocated(work, Unallocated(payer), since=since, actor=actor, now=now)
        return
    if name not in tuple(LedgerClass):
        raise SettingError(f"no class {name!r}: use {', '.join(LedgerClass)}, or {UNALLOCATED}")
    if payer not in tuple(Payer):
        raise SettingError(f"no payer {payer!r}: use {', '.join(Payer)}")
    put_payer(work, LedgerClass(name), Payer(payer), since=since, actor=actor, now=now)


def _put(
    work: Work, name: str, value: str, since: datetime, actor: str, now: datetime | None
) -> None:
    if (since.minute, since.second, since.microsecond) != (0, 0, 0):
        raise SettingError(f"who pays for {name}: {since.isoformat()} is no whole hour")
    refuse_closed(work, None, since, f"who pays for {name}")
    before = who_pays_text(WhoPays.load(work), name, since)
    row = {"class": name, "payer": value, "effective_from": since, "source": actor}
    work.append("who_pays", {key: [cell] for key, cell in row.items()})
    note(work, now or since, actor, "who_pays.put", name, before=before,
         after=f"{value} from {since.isoformat()}")  # fmt: skip


def who_pays_text(table: WhoPays, name: str, at: datetime) -> str:
    """What the table says of a class, or of unallocated cost, at an instant."""
    if name == UNALLOCATED:
        return table.unallocated(at).value
    return table.at(at)[LedgerClass(name)].value


class WhoPays:
    """The table at any instant."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._rows = rows
        self._tables: dict[datetime, Mapping[LedgerClass, Payer]] = {}
        self._rules: dict[datetime, Unallocated] = {}
        self.changes: list[datetime] = sorted({row["effective_from"] for row in rows})

    @classmethod
    def load(cls, work: Work) -> WhoPays:
        # The row that was put last decides where two say different things from one instant on.
        rows = work.rows("SELECT *, rowid FROM who_pays")
        return cls(sorted(rows, key=lambda row: (row["effective_from"], row["rowid"])))

    def at(self, at: datetime) -> Mapping[LedgerClass, Payer]:
        """Who is asked to pay for each class; where causers bear what is unallocated, they are."""
        if at not in self._tables:
            self._tables[at] = self._table(at)
        return self._tables[at]

    def _table(self, at: datetime) -> Mapping[LedgerClass, Payer]:
        table = dict(DEFAULT)
        for row in self._rows:
            if row["effective_from"] <= at and row["class"] != UNALLOCATED:
                table[LedgerClass(row["class"])] = Payer(row["payer"])
        if self.unallocated(at) is Unallocated.CAUSERS:
            for name in _CAUSED:
                if table[name] is Payer.PLATFORM:
                    table[name] = Payer.CAUSER
        return table

    def since(self, name: str, at: datetime) -> dict[str, Any]:
        """Since when the table says this, and who said so; None and `default` for a default."""
        for row in reversed(self._rows):
            if row["effective_from"] <= at and row["class"] == name:
                return {"effective_from": row["effective_from"], "source": row["source"]}
        return {"effective_from": None, "source": "default"}

    def unallocated(self, at: datetime) -> Unallocated:
        """Who bears what the table leaves with the platform."""
        if at not in self._rules:
            put = [r for r in self._rows if r["effective_from"] <= at and r["class"] == UNALLOCATED]
            self._rules[at] = Unallocated(put[-1]["payer"]) if put else Unallocated.PLATFORM
        return self._rules[at]


def who_pays_rows(work: Work, at: datetime) -> list[dict[str, Any]]:
    """The whole table as it holds at an instant, in the shape of the settings' rows."""
    table = WhoPays.load(work)
    found: list[tuple[str, str]] = [
        (name.value, payer.value) for name, payer in table.at(at).items()
    ]
    found.append((UNALLOCATED, table.unallocated(at).value))
    return [
        {"key": f"who pays: {name}", "value": payer, "cluster": None, **table.since(name, at)}
        for name, payer in found
    ]
