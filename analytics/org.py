"""Who owns what a run names: user, account, project, label or queue -> project, team, cost
centre."""

from __future__ import annotations

import hashlib
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from analytics.errors import OrgMapError
from analytics.sheet import read_sheet
from analytics.window import EPOCH, parse_time
from collector.store import Work

KEY_KINDS = ("project", "account", "user", "partition")
"""In this order a run's names are looked up, after its labels; the first that is mapped decides."""
LABEL = "label:"
ANY = "*"
"""As a label's value: any that has no row of its own. As its team: the value itself."""
WHOLE_PPM = 1_000_000
UNMAPPED = "unmapped"


@lru_cache(maxsize=1 << 16)
def folded(name: str) -> str:
    """A name for joining: Unicode NFC, case-folded, without outer blanks."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name.strip()).casefold())


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapping:
    """What a key belongs to over ``[valid_from, valid_to)``; shares of one key add to 1,000,000
    ppm."""

    key_kind: str
    key_value: str
    team: str
    project: str | None = None
    cost_center: str | None = None
    ratio_ppm: int = WHOLE_PPM
    valid_from: datetime = EPOCH
    valid_to: datetime | None = None
    cluster: str | None = None
    source: str = "file"


def read_mappings(text: str, name: str) -> list[Mapping]:
    """Mappings from CSV: key_kind, key_value, team and optionally project, cost_center, ratio,
    valid_from, valid_to, cluster. ``ratio`` is a decimal share (0.6); thirds may be given as
    ratio_ppm.

    Raises OrgMapError with file, line and remedy.
    """
    needed = {"key_kind", "key_value", "team"}
    return read_sheet(text, name, needed, OrgMapError, lambda row: _from_row(row, name))


def _from_row(row: dict[str, str], name: str) -> Mapping:
    kind = row["key_kind"]
    if kind not in KEY_KINDS and not (kind.startswith(LABEL) and kind[len(LABEL) :].strip()):
        raise OrgMapError(
            f"key_kind {kind!r}: use one of {', '.join(KEY_KINDS)}, or {LABEL}KEY for a label"
        )
    if row["team"] == ANY and not kind.startswith(LABEL):
        raise OrgMapError(f"team {ANY} stands for the value of a label: use it with {LABEL}KEY")
    if not row["key_value"] or not row["team"]:
        raise OrgMapError("key_value and team must not be empty")
    since = parse_time(row["valid_from"]) if row.get("valid_from") else EPOCH
    until = parse_time(row["valid_to"]) if row.get("valid_to") else None
    if until is not None and until <= since:
        raise OrgMapError("valid_to must lie after valid_from")
    return Mapping(
        key_kind=row["key_kind"],
        key_value=row["key_value"],
        team=row["team"],
        project=row.get("project") or None,
        cost_center=row.get("cost_center") or None,
        ratio_ppm=_ratio_ppm(row),
        valid_from=since,
        valid_to=until,
        cluster=row.get("cluster") or None,
        source=name,
    )


def _ratio_ppm(row: dict[str, str]) -> int:
    exact, share = row.get("ratio_ppm"), row.get("ratio")
    if not exact and not share:
        return WHOLE_PPM
    try:
        ppm = int(exact) if exact else round(float(share or 0) * WHOLE_PPM)
    except (ValueError, OverflowError) as error:
        raise OrgMapError(
            f"share {(exact or share)!r} is no number: write ratio 0.6, or ratio_ppm 600000"
        ) from error
    if not 0 < ppm <= WHOLE_PPM:
        raise OrgMapError(f"share {exact or share}: it must lie above 0 and up to 1")
    return ppm


def load_mappings(
    work: Work, mappings: Iterable[Mapping], *, at: datetime, actor: str, replace: bool = False
) -> int:
    """Add mappings (or replace all of them), checked together with what is there; returns how many.

    A row that starts later ends an open one of the same key, so moving an account needs one row.
    Raises OrgMapError when the shares of a key do not add to one.
    """
    rows = [] if replace else mapping_rows(work)
    new = [_columns(mapping) for mapping in mappings]
    merged = _ended({_identity(row): row for row in [*rows, *new]}.values())
    _check_shares(merged)
    work.execute("DELETE FROM org_map")
    if merged:
        work.append("org_map", {name: [row[name] for row in merged] for name in merged[0]})
    text = "; ".join(f"{r['key_kind']} {r['raw_value']} -> {r['team']}" for r in new[:20])
    work.append(
        "audit",
        {"ts": [at], "actor": [actor], "action": ["org.load"], "subject": ["org_map"],
         "after_value": [text]},
    )  # fmt: skip
    return len(new)


def mapping_rows(work: Work) -> list[dict[str, Any]]:
    """The whole map."""
    return work.rows("SELECT * FROM org_map ORDER BY ALL")


def map_version(work: Work) -> str:
    """A hash of the whole map."""
    owners = work.value(
        "SELECT string_agg(concat_ws('/', key_kind, key_value, team, project, ratio_ppm, "
        "valid_from), ';' ORDER BY key_kind, key_value, team, project, valid_from) FROM org_map"
    )
    return hashlib.sha256(str(owners).encode()).hexdigest()[:16]


def _identity(row: dict[str, Any]) -> tuple[Any, ...]:
    return (*_key(row), row["valid_from"], row["team"], row["project"], row["cost_center"])


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return (row["cluster"], row["key_kind"], row["key_value"])


def _columns(m: Mapping) -> dict[str, Any]:
    return {
        "cluster": m.cluster, "key_kind": _kind(m.key_kind), "key_value": folded(m.key_value),
        "raw_value": m.key_value, "project": m.project, "team": m.team,
        "cost_center": m.cost_center, "ratio_ppm": m.ratio_ppm, "valid_from": m.valid_from,
        "valid_to": m.valid_to, "source": m.source,
    }  # fmt: skip


def _kind(name: str) -> str:
    return LABEL + folded(name[len(LABEL) :]) if name.startswith(LABEL) else name


def label_keys(work: Work) -> frozenset[str]:
    """Keys of the labels that the map is about."""
    rows = work.rows(
        "SELECT DISTINCT key_kind FROM org_map WHERE starts_with(key_kind, ?)", [LABEL]
    )
    return frozenset(row["key_kind"][len(LABEL) :] for row in rows)


def teams_by_label(work: Work) -> set[str]:
    """The teams that the map takes from values of labels, as far as anybody has held GPUs."""
    rows = work.rows("SELECT DISTINCT key_kind FROM org_map WHERE team = ?", [ANY])
    kinds = {row["key_kind"] for row in rows}
    holders = work.rows("SELECT DISTINCT labels FROM ledger_holder WHERE labels IS NOT NULL")
    return {value for row in holders for kind, value in _labels(row) if kind in kinds and value}


def _ended(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    by_key: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        by_key[_key(row)].append(row)
    result = []
    for same in by_key.values():
        starts = sorted({row["valid_from"] for row in same})
        for row in same:
            later = next((t for t in starts if t > row["valid_from"]), None)
            ends = [t for t in (row["valid_to"], later) if t is not None]
            result.append({**row, "valid_to": min(ends, default=None)})
    return result


def _check_shares(rows: list[dict[str, Any]]) -> None:
    totals: dict[tuple[Any, ...], int] = defaultdict(int)
    for row in rows:
        if not 0 < row["ratio_ppm"] <= WHOLE_PPM:
            raise OrgMapError(
                f"{row['key_kind']} {row['raw_value']}: a share must lie above 0 and up to 1"
            )
        totals[(*_key(row), row["valid_from"])] += row["ratio_ppm"]
    for key, total in totals.items():
        if total != WHOLE_PPM:
            raise OrgMapError(
                f"{key[1]} {key[2]} from {key[3].date()}: the shares add to {total / WHOLE_PPM}, "
                "not to 1 (give thirds as ratio_ppm 333333, 333333, 333334)"
            )


@dataclass(frozen=True, slots=True)
class Owner:
    """One share of a holder's time; ``hint`` says what to map where nothing is."""

    team: str
    project: str
    cost_center: str
    ratio_ppm: int


def _labels(holder: dict[str, Any]) -> list[tuple[str, str | None]]:
    """The labels that a holder's row keeps (sorted ``key=value`` lines) as keys of the map."""
    pairs = (line.partition("=") for line in (holder.get("labels") or "").splitlines())
    return [(LABEL + key, value) for key, _, value in pairs]


_COLUMNS = {"project": "project", "account": "account", "user": "user_name", "partition": "queue"}
"""Where a holder has what a kind of key names."""


class OrgMap:
    """The map at any instant."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        kinds = {row["key_kind"] for row in rows}
        self._kinds = [kind for kind in KEY_KINDS if kind in kinds]
        self._labels = any(kind.startswith(LABEL) for kind in kinds)
        self._rows: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        for row in rows:
            self._rows[row["key_kind"], row["key_value"]].append(row)
        self.changes = sorted(
            {t for row in rows for t in (row["valid_from"], row["valid_to"]) if t is not None}
        )

    @classmethod
    def load(cls, work: Work) -> OrgMap:
        return cls(work.rows("SELECT * FROM org_map"))

    def looked_at(self, holder: dict[str, Any]) -> tuple[Any, ...]:
        """What the map goes by of a holder: who is alike in this has the same owners."""
        labels = holder.get("labels") if self._labels else None
        named = [holder.get(_COLUMNS[kind]) for kind in self._kinds]
        return (holder["cluster"], holder["project"], labels, *named)

    def owners(self, holder: dict[str, Any], at: datetime) -> list[Owner]:
        """Who owns a holder's time at ``at``; a holder without mapping is `unmapped`, whole.

        Labels come first, in the order of their keys, a value's own row before that of any value;
        then project, account, user and partition.
        """
        project = holder["project"] or UNMAPPED
        labels = _labels(holder) if self._labels else []
        keys = [*labels, *((kind, holder.get(_COLUMNS[kind])) for kind in self._kinds)]
        for kind, value in keys:
            live = self._live((kind, folded(value)), holder["cluster"], at) if value else []
            if value and not live and kind.startswith(LABEL):
                live = self._live((kind, ANY), holder["cluster"], at)
            if live:
                return [
                    Owner(
                        str(value) if r["team"] == ANY else r["team"],
                        r["project"] or project,
                        r["cost_center"] or UNMAPPED,
                        r["ratio_ppm"],
                    )
                    for r in live
                ]
        return [Owner(UNMAPPED, project, UNMAPPED, WHOLE_PPM)]

    def _live(self, key: tuple[str, str], cluster: str, at: datetime) -> list[dict[str, Any]]:
        live = [
            row
            for row in self._rows.get(key, ())
            if row["cluster"] in (None, cluster)
            and row["valid_from"] <= at
            and (row["valid_to"] is None or at < row["valid_to"])
        ]
        own = [row for row in live if row["cluster"] is not None]
        return sorted(
            own or live,
            key=lambda row: (row["team"], str(row["project"]), str(row["cost_center"])),
        )
