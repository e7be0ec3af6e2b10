"""The who-pays table: for each class, whose bill it is on."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from analytics.errors import SettingError
from analytics.ledger.classes import LedgerClass
from collector.store import Work


class Payer(StrEnum):
    """`causer` also means the preemptor's team for `lost`; what has no causer stays with the
    platform."""

    HOLDER = "holder"
    CAUSER = "causer"
    WAITER = "waiter"
    PLATFORM = "platform"


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


def put_payer(work: Work, name: LedgerClass, payer: Payer, *, since: datetime, actor: str) -> None:
    """Change who pays for a class from ``since`` on; SettingError where nobody of that kind
    exists."""
    allowed = {
        Payer.HOLDER: _HELD_ONLY,
        Payer.CAUSER: _CAUSED,
        Payer.WAITER: _WAITED,
        Payer.PLATFORM: frozenset(LedgerClass),
    }
    if name not in allowed[payer]:
        raise SettingError(f"{name} has no {payer}: it cannot pay")
    row = {"class": name.value, "payer": payer.value, "effective_from": since, "source": actor}
    work.append("who_pays", {key: [value] for key, value in row.items()})
    work.append(
        "audit",
        {"ts": [since], "actor": [actor], "action": ["who_pays.put"], "subject": [name.value],
         "after_value": [payer.value]},
    )  # fmt: skip


class WhoPays:
    """The table at any instant."""

    def __init__(self, rows: list[dict[str, object]]) -> None:
        self._rows = rows
        self.changes = sorted({row["effective_from"] for row in rows})  # type: ignore[type-var]

    @classmethod
    def load(cls, work: Work) -> WhoPays:
        return cls(work.rows("SELECT * FROM who_pays ORDER BY effective_from, class, payer"))

    def at(self, at: datetime) -> Mapping[LedgerClass, Payer]:
        table = dict(DEFAULT)
        for row in self._rows:
            if row["effective_from"] <= at:  # type: ignore[operator]
                table[LedgerClass(str(row["class"]))] = Payer(str(row["payer"]))
        return table
