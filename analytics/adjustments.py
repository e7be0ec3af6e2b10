"""Money that people add to or take from a team's bill: never inside a class, never without a
reason and an approval."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from difflib import get_close_matches
from typing import Any

from analytics.audit import note
from analytics.currencies import is_currency
from analytics.errors import AdjustmentError
from analytics.money import text
from analytics.months import Month
from analytics.org import ANY, UNMAPPED, folded, teams_by_label
from analytics.window import Window
from collector.store import Work

KINDS = ("credit", "dispute", "manual")
MOST = Decimal("1000000000")
_COLUMNS = (
    "adjustment_id, ts, month, cluster, team, kind, amount, currency, reason, author, approved_by, "
    "approved_at, rejected_by, rejected_at, decision_reason"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjustment:
    """``amount`` is added to what ``team`` (None: the platform) pays for ``month``.

    It counts from its approval on; a dispute is a claim until then. ``cluster`` None = of the bill
    as a whole.
    """

    month: Month
    team: str | None
    kind: str
    amount: Decimal
    currency: str
    reason: str
    author: str
    cluster: str | None = None
    adjustment_id: str = ""
    ts: datetime | None = None
    approved_by: str | None = None
    approved_at: datetime | None = None
    rejected_by: str | None = None
    rejected_at: datetime | None = None
    decision_reason: str | None = None

    def __post_init__(self) -> None:
        problem = _problem(self)
        if problem is not None:
            raise AdjustmentError(f"adjustment: {problem}")

    @property
    def state(self) -> str:
        """pending, approved or rejected."""
        if self.approved_by is not None:
            return "approved"
        return "pending" if self.rejected_by is None else "rejected"

    def within(self, window: Window) -> bool:
        """Whether its month begins in the window, in the window's time zone: so that windows that
        follow each other count it once."""
        return window.since <= self.month.starts(window.time_zone) < window.until

    def to_dict(self) -> dict[str, Any]:
        names = ("adjustment_id", "cluster", "team", "kind", "currency", "reason", "author",
                 "approved_by", "rejected_by", "decision_reason")  # fmt: skip
        return {
            **{name: getattr(self, name) for name in names[:1]},
            "month": str(self.month),
            **{name: getattr(self, name) for name in names[1:4]},
            "amount": text(self.amount),
            **{name: getattr(self, name) for name in names[4:]},
            "state": self.state,
        }


def _problem(a: Adjustment) -> str | None:
    if not a.amount.is_finite() or not -MOST < a.amount < MOST:
        return f"amount {a.amount}: too large, or no number"
    lowers = a.kind in ("credit", "dispute")
    checks = (
        (a.kind not in KINDS, f"kind {a.kind!r}: use one of {', '.join(KINDS)}"),
        (a.amount == 0, "amount 0 changes nothing"),
        (a.amount != round(a.amount, 6), f"amount {a.amount}: at most 6 decimals"),
        (
            lowers and a.amount > 0,
            f"a {a.kind} lowers what the team pays: write the amount below 0 (-{a.amount})",
        ),
        (not is_currency(a.currency), f"currency {a.currency!r}: use an ISO 4217 code such as USD"),
        (not a.reason.strip(), "a reason is needed: whoever pays will ask for it"),
        (not a.author.strip(), "an author is needed"),
    )
    return next((text for wrong, text in checks if wrong), None)


def known_teams(work: Work) -> list[str]:
    """Every team of the map, those that labels name, and `unmapped`."""
    names = {row["team"] for row in work.rows("SELECT DISTINCT team FROM org_map")}
    if ANY in names:
        names |= teams_by_label(work)
    return [*sorted(names - {UNMAPPED, ANY}), UNMAPPED]


def checked_team(work: Work, team: str) -> str:
    """The team as the map spells it; AdjustmentError with the nearest names for an unknown one."""
    known = {folded(name): name for name in known_teams(work)}
    if folded(team) in known:
        return known[folded(team)]
    near = get_close_matches(folded(team), known, n=3) or list(known)[:10]
    raise AdjustmentError(
        f"no team {team!r} in the map of owners: there is "
        f"{', '.join(known[name] for name in near)} (see org list)"
    )


def put_adjustment(work: Work, wanted: Adjustment, *, at: datetime) -> Adjustment:
    """Enter it, pending; returns it with its id. AdjustmentError for an unknown team or cluster."""
    team = None if wanted.team is None else checked_team(work, wanted.team)
    clusters = [r["cluster"] for r in work.rows("SELECT DISTINCT cluster FROM node ORDER BY ALL")]
    if wanted.cluster is not None and wanted.cluster not in clusters:
        raise AdjustmentError(f"no cluster {wanted.cluster!r}: there is {', '.join(clusters)}")
    number = work.value("SELECT count(*) FROM adjustment") + 1
    row: dict[str, Any] = {
        "adjustment_id": f"A-{number:04d}", "ts": at, "month": wanted.month.first,
        "cluster": wanted.cluster, "team": team, "kind": wanted.kind,
        "amount": wanted.amount.quantize(Decimal("0.000001")), "currency": wanted.currency,
        "reason": wanted.reason.strip(), "author": wanted.author.strip(),
    }  # fmt: skip
    work.append("adjustment", {name: [value] for name, value in row.items() if value is not None})
    note(
        work, at, row["author"], "adjustment.add", row["adjustment_id"],
        after=_told(row), reason=row["reason"],
    )  # fmt: skip
    return adjustment(work, row["adjustment_id"])


def _told(row: dict[str, Any]) -> str:
    where = "platform" if row["team"] is None else row["team"]
    return f"{row['kind']} {text(row['amount'])} {row['currency']} {where} {row['month']:%Y-%m}"


def decide(
    work: Work, adjustment_id: str, *, approve: bool, actor: str, at: datetime, reason: str = ""
) -> Adjustment:
    """Approve or reject a pending adjustment.

    Raises AdjustmentError for one that is decided already, an approver who wrote it, or a rejection
    without a reason.
    """
    found = adjustment(work, adjustment_id)
    if found.state != "pending":
        raise AdjustmentError(
            f"{adjustment_id} is {found.state} already: enter another one to take it back"
        )
    if not actor.strip() or folded(actor) == folded(found.author):
        raise AdjustmentError(
            f"{adjustment_id} was written by {found.author}: somebody else must decide (--by NAME)"
        )
    if not approve and not reason.strip():
        raise AdjustmentError(f"{adjustment_id}: say why it is rejected (--reason)")
    who, when = ("approved_by", "approved_at") if approve else ("rejected_by", "rejected_at")
    work.execute(
        f"UPDATE adjustment SET {who} = ?, {when} = ?, decision_reason = ? "  # noqa: S608 - our own names
        "WHERE adjustment_id = ?",
        [actor.strip(), at, reason.strip() or None, adjustment_id],
    )
    action = f"adjustment.{'approve' if approve else 'reject'}"
    note(work, at, actor.strip(), action, adjustment_id, before="pending",
         after="approved" if approve else "rejected", reason=reason.strip() or None)  # fmt: skip
    return adjustment(work, adjustment_id)


def adjustment(work: Work, adjustment_id: str) -> Adjustment:
    """One by its id; AdjustmentError where there is none."""
    for row in work.rows(
        f"SELECT {_COLUMNS} FROM adjustment WHERE adjustment_id = ?",  # noqa: S608 - our own names
        [adjustment_id],
    ):
        return _from_row(row)
    raise AdjustmentError(f"no adjustment {adjustment_id!r}: see adjust list")


def adjustments(
    work: Work,
    *,
    month: Month | None = None,
    team: str | None = None,
) -> list[Adjustment]:
    """All of them by month and id; of one month, of one team."""
    asked = {"month": None if month is None else month.first, "team": team}
    wanted = {column: value for column, value in asked.items() if value is not None}
    where = " AND ".join(["true", *(f"{column} = ?" for column in wanted)])
    rows = work.rows(
        f"SELECT {_COLUMNS} FROM adjustment WHERE {where}",  # noqa: S608 - our own names
        list(wanted.values()),
    )
    return [_from_row(row) for row in sorted(rows, key=lambda r: (r["month"], r["adjustment_id"]))]


def _from_row(row: dict[str, Any]) -> Adjustment:
    day: date = row["month"]
    return Adjustment(**{**row, "month": Month.of(day)})
