"""Cut a month's reports into statements, to the last coin."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from difflib import get_close_matches
from fractions import Fraction
from typing import Any

from analytics.adjustments import adjustments, known_teams
from analytics.errors import StatementError
from analytics.ledger.classes import HELD, LedgerClass
from analytics.money import parts_of, shown_parts, split
from analytics.org import folded
from analytics.reports.report import Row
from analytics.statements.facts import Asked, MonthFacts, Team, month_facts
from analytics.statements.statement import Energy, Entry, Line, Share, Statement, Told
from collector.store import Store

MOST_USERS = 20
OTHERS = "…"
"""The line of all users after the first twenty."""
_ORDER = {name.value: place for place, name in enumerate(LedgerClass)}


def statements(store: Store, asked: Asked, *, now: datetime) -> list[Statement]:
    """Every team that held, pays or was adjusted in the month, by name, and the platform last.

    The ledger of ``asked.window(now)`` must have been built. Raises StatementError for a month that
    has not begun or has no price at all, PriceError for amounts that no dated rate converts.
    """
    facts = month_facts(store, asked, now)
    teams = set(facts.totals()) | {entry.team for entry in _own_entries(facts)} | {None}
    return [_statement(facts, team, now) for team in sorted(teams, key=_last)]


def statement_of(store: Store, team: Team, asked: Asked, *, now: datetime) -> Statement:
    """One team's (None: the platform's), as `statements`; one that held nothing owes nothing.

    Raises StatementError for a team that nobody knows.
    """
    asked.window(now)
    with store.work() as work:
        adjusted = {entry.team for entry in adjustments(work, month=asked.month)}
        known = [*known_teams(work), *sorted(name for name in adjusted if name is not None)]
    name = None if team is None else _named(team, known)
    return _statement(month_facts(store, asked, now), name, now)


def _named(team: str, known: Sequence[str]) -> str:
    names = {folded(name): name for name in known}
    if folded(team) not in names:
        near = get_close_matches(folded(team), names, n=3) or list(names)[:10]
        raise StatementError(
            f"no team {team!r}: there is {', '.join(names[name] for name in near)} (see org list)"
        )
    return names[folded(team)]


def _last(team: Team) -> tuple[bool, str]:
    return (team is None, team or "")


def _own_entries(facts: MonthFacts) -> list[Any]:
    return [
        entry for entry in facts.entries
        if facts.cluster is None or entry.cluster == facts.cluster
    ]  # fmt: skip


def _statement(facts: MonthFacts, team: Team, now: datetime) -> Statement:
    gpu_time = facts.totals().get(team, Decimal(0))
    row = next((r for r in facts.teams.rows if r["team"] == team), None)
    entries = [entry for entry in _own_entries(facts) if entry.team == team]
    adjusted = [
        Entry(entry, shown_parts([facts.converted(entry.amount, entry.currency)], facts.coin)[0])
        for entry in entries
        if entry.state == "approved"
    ]
    shares = _shares(facts, team)
    total = gpu_time + sum((s.amount for s in shares), Decimal(0))
    told = _told(facts, team)
    return Statement(
        team=team, month=facts.month, window=facts.window, cluster=facts.cluster,
        currency=facts.currency, made_at=now, demo=facts.demo, closed_days=facts.closed_days,
        days=facts.days, proved=facts.teams.identity.holds,
        lines=_class_lines(facts, team, gpu_time), overhead=shares,
        adjustments=adjusted, pending=[e for e in entries if e.state == "pending"],
        by_model=_lines(facts, facts.models.rows, team, "gpu_model", gpu_time),
        by_user=_users(facts, team, gpu_time), stranded=told[0], waited=told[1],
        gpu_time=gpu_time, total=total + sum((a.amount for a in adjusted), Decimal(0)),
        fleet_gpu_time=sum(facts.totals().values(), Decimal(0)),
        held_gpu_hours=_of(row, "held_gpu_hours"), used_gpu_hours=_of(row, "used_gpu_hours"),
        unpriced_gpu_hours=_of(row, "unpriced_gpu_hours"), efficiency_ratio=_efficiency(row),
        coverage_ratio=None if row is None else row["coverage_ratio"],
        fleet_coverage_ratio=facts.teams.coverage_ratio, rules=facts.rules,
        remarks=list(facts.remarks), energy=_energy(facts, team),
    )  # fmt: skip


def _energy(facts: MonthFacts, team: Team) -> Energy | None:
    """None where nothing of the team's was measured."""
    row = next((row for row in facts.energy if row["team"] == team), None)
    if row is None:
        return None
    observed = row["counter_ratio"] == 1
    return Energy(row["energy_kwh"], row["carbon_g"], "observed" if observed else "modelled")


def _of(row: Row | None, name: str) -> Decimal:
    return Decimal(0) if row is None else row[name]


def _efficiency(row: Row | None) -> float | None:
    """used / (used + lost + allocated_idle), of what this team held."""
    if row is None:
        return None
    names = ("used_gpu_hours", "lost_gpu_hours", "allocated_idle_gpu_hours")
    whole = sum(row[name] for name in names)
    return float(row["used_gpu_hours"] / whole) if whole else None


def _class_lines(facts: MonthFacts, team: Team, total: Decimal) -> list[Line]:
    """Every class that the team held, caused at a price, or pays a share of; in the ledger's
    order. The used, the idle, the lost and the unmeasured are always told."""
    rows = [row for row in facts.classes.rows if row["team"] == team]
    amounts = parts_of(total, [Fraction(row["cost"] or 0) for row in rows], facts.coin)
    found = {
        row["class"]: Line(row["class"], row["gpu_hours"], amount)
        for row, amount in zip(rows, amounts, strict=True)
        if row["gpu_hours"] or amount
    }
    if team is not None:
        for name in HELD[:4]:
            found.setdefault(name.value, Line(name.value, Decimal(0), 0 * facts.coin))
    return sorted(found.values(), key=lambda line: _ORDER[line.name])


def _lines(
    facts: MonthFacts, every: Sequence[Row], team: Team, key: str, total: Decimal
) -> list[Line]:
    rows = [row for row in every if row["team"] == team]
    amounts = parts_of(total, [Fraction(row["cost"] or 0) for row in rows], facts.coin)
    hours = "gpu_hours" if team is None else "held_gpu_hours"
    found = [
        Line(row[key] or "", row[hours], amount, row["used_gpu_hours"])
        for row, amount in zip(rows, amounts, strict=True)
        if row[hours] or amount
    ]
    return sorted(found, key=lambda line: (-line.amount, -line.gpu_hours, line.name))


def _users(facts: MonthFacts, team: Team, total: Decimal) -> list[Line]:
    """The users with the largest amounts, and the others in one line."""
    if team is None:
        return []
    lines = _lines(facts, facts.users.rows, team, "user", total)
    rest = lines[MOST_USERS:]
    if not rest:
        return lines
    used = sum((line.used_gpu_hours or Decimal(0) for line in rest), Decimal(0))
    hours = sum((line.gpu_hours for line in rest), Decimal(0))
    amount = sum((line.amount for line in rest), Decimal(0))
    return [*lines[:MOST_USERS], Line(OTHERS, hours, amount, used)]


def _shares(facts: MonthFacts, team: Team) -> list[Share]:
    """The team's part of each overhead; where nobody held anything it stays with the platform."""
    shares = []
    for row in facts.overhead:
        teams = sorted(row["weights"])
        parts = split(int(row["coins"] / facts.coin), [row["weights"][name] for name in teams])
        own = dict(zip(teams, parts, strict=True)) if parts else {None: row["coins"] / facts.coin}
        if team in own:
            amount = Decimal(own[team]) * facts.coin
            shares.append(Share(row["name"], row["coins"], row["rule"], amount))
    return shares


def _told(facts: MonthFacts, team: Team) -> tuple[list[Told], list[Told]]:
    """What it stranded for others, and what was kept from others while it waited."""
    sums: dict[tuple[str, str], tuple[Decimal, Decimal | None]] = {}
    for row in facts.stranding.rows:
        if row["team"] != team or (team is None and row["role"] == "waiter"):
            continue
        key = (row["role"], row["class"])
        hours, cost = sums.get(key, (Decimal(0), Decimal(0)))
        money = None if cost is None or row["cost"] is None else cost + row["cost"]
        sums[key] = (hours + row["gpu_hours"], money)
    found: tuple[list[Told], list[Told]] = ([], [])
    for (role, name), (hours, cost) in sorted(sums.items(), key=lambda i: _ORDER[i[0][1]]):
        money = None if cost is None else cost.quantize(facts.coin)
        found[role == "waiter"].append(Told(name, hours, money))
    return found
