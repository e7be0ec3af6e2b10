"""A fingerprint of the facts behind each hour, so that only what late facts change is built again.

Intervals are clipped to the hour: a run that goes on, ends or is extended elsewhere leaves it
alone.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from datetime import datetime, timedelta

from analytics.ledger.checkpoints import LEARNT_OVER_DAYS
from analytics.ledger.classes import RULES_VERSION
from analytics.ledger.lost import THROWN_STATES
from analytics.ledger.profile import demand_profile
from analytics.ledger.settings import settings_at
from analytics.org import label_keys
from collector.store import Work

_HOURS = """WITH hours AS (SELECT unnest(generate_series(?, ? - INTERVAL 1 HOUR, INTERVAL 1 HOUR))
AS h)
"""
_CLIP = "greatest({0}, h), least(coalesce({1}, 'infinity'), h + INTERVAL 1 HOUR)"
_OVERLAP = "{0} < h + INTERVAL 1 HOUR AND coalesce({1}, 'infinity') > h"
_THROWN = ", ".join(f"'{state}'" for state in sorted(THROWN_STATES))


def _interval(table: str, columns: str, since: str, until: str, extra: str = "") -> str:
    """Hash of the rows of an interval table that overlap each hour."""
    clip, overlap = _CLIP.format(since, until), _OVERLAP.format(since, until)
    return (
        f"SELECT h, hash({columns}, {clip}) AS x FROM hours JOIN {table} ON cluster = ? "  # noqa: S608 - our own names
        f"AND {overlap} {extra}"
    )


# What a run is, is hashed once, not once more in every hour of it.
_RUN = f"""
SELECT h, hash(whole, least(greatest(waits, h), h + INTERVAL 1 HOUR),
  least(greatest(starts, h), h + INTERVAL 1 HOUR), least(greatest(ends, h), h + INTERVAL 1 HOUR))
  AS x
FROM hours JOIN (
  SELECT hash(r.run_id, r.job_id, r.user_name, r.account, r.project, r.partition, r.qos,
      CASE WHEN state IN ({_THROWN}) THEN (state, start_at, end_at, j.labels, j.name) END,
      j.req_nodes, j.req_gpus, j.req_gpu_model, j.req_cpus, j.req_mem_mib, j.limit_s, j.topology,
      j.partitions) AS whole,
    coalesce(eligible_at, r.submit_at) AS waits, coalesce(start_at, 'infinity') AS starts,
    coalesce(end_at, last_known_at, 'infinity') AS ends
  FROM job_run r LEFT JOIN job j ON j.cluster = r.cluster AND j.job_id = r.job_id
  WHERE r.cluster = ? AND coalesce(eligible_at, r.submit_at) < (SELECT max(h) + INTERVAL 1 HOUR FROM
    hours) AND coalesce(end_at, last_known_at, 'infinity') > (SELECT min(h) FROM hours))
  ON waits < h + INTERVAL 1 HOUR AND ends > h"""  # noqa: S608 - our own names

_CHECKPOINT = f"""
SELECT h, hash(e.run_id, e.job_id, e.ts) AS x FROM hours JOIN job_run r ON r.cluster = ?
  AND r.state IN ({_THROWN}) AND r.start_at < h + INTERVAL 1 HOUR AND r.end_at > h
JOIN event e ON e.cluster = r.cluster AND e.kind = 'checkpoint_end' AND e.ts BETWEEN r.start_at AND
r.end_at
  AND (e.run_id = r.run_id OR e.job_id = r.job_id)"""  # noqa: S608 - our own names

# Marks of any job may tell how often a thrown run's class writes a checkpoint.
_LEARNT = f"""
WITH thrown AS (
  SELECT DISTINCT h, r.cluster, r.end_at FROM hours JOIN job_run r ON r.cluster = ?
    AND r.state IN ({_THROWN}) AND r.start_at < h + INTERVAL 1 HOUR AND r.end_at > h)
SELECT h, hash(e.run_id, e.job_id, e.ts) AS x FROM thrown
JOIN event e ON e.cluster = thrown.cluster AND e.kind = 'checkpoint_end'
  AND e.ts BETWEEN thrown.end_at - INTERVAL {LEARNT_OVER_DAYS} DAY AND thrown.end_at"""  # noqa: S608 - our own names

_LABELLED = """
SELECT h, hash(r.run_id, j.labels) AS x FROM hours JOIN job_run r ON r.cluster = ?
  AND r.start_at < h + INTERVAL 1 HOUR AND coalesce(r.end_at, r.last_known_at, 'infinity') > h
JOIN job j ON j.cluster = r.cluster AND j.job_id = r.job_id AND j.labels IS NOT NULL"""

_PARTS = {
    "node": _interval(
        "node", "node, gpu_model, gpus, cpus, mem_mib, partitions, rack, leaf, spine, owned",
        "valid_from", "valid_to",
    ),
    "allocation": _interval(
        "allocation",
        "run_id, node, gpu_model, gpu_uuid, mig_uuid, gpus, share_num, share_den, cpus, mem_mib",
        "start_at", "end_at",
    ),
    "run": _RUN,
    "state": _interval("node_state", "node, state", "since", "until"),
    "reservation": _interval("reservation", "name, node, gpus, accounts", "since", "until"),
    "window": _interval("fact_window", "kind, node", "since", "until", "AND kind = 'scheduler'"),
    "mig": _interval(
        "mig_instance", "node, gpu_uuid, mig_uuid, profile, gpu_slices, mem_mib, placement_start",
        "valid_from", "valid_to",
    ),
    "fatal": "SELECT h, hash(node, gpu_uuid, run_id, job_id, ts) AS x FROM hours JOIN event "
    "ON cluster = ? AND fatal AND ts < h + INTERVAL 1 HOUR",
    "seen": "SELECT h, hash(node, gpu_uuid, valid_to) AS x FROM hours JOIN device_seen "
    "ON cluster = ? AND valid_to > h AND valid_to < h + INTERVAL 1 HOUR",
    "checkpoint": _CHECKPOINT,
    "learnt": _LEARNT,
    "declared": "SELECT h, hash(account, job_name, interval_s, effective_from) AS x FROM hours "
    "JOIN checkpoint_interval ON (cluster = ? OR cluster IS NULL)",
    "queue": "SELECT h, hash(q.ts, job_id, priority, reason, nodes, gpus, gpus_per_node, "
    "cpus, mem_mib, gpu_model, partition, topology) AS x FROM hours "
    "JOIN queue_snapshot q ON cluster = ? "
    "AND q.ts >= h - INTERVAL 1 HOUR AND q.ts < h + INTERVAL 1 HOUR",
    "price": "SELECT h, hash(price_id) AS x FROM hours JOIN price ON "
    "(cluster = ? OR cluster IS NULL) AND retired_at IS NULL "
    "AND NOT starts_with(source, 'default:') "
    "AND effective_from < h + INTERVAL 1 HOUR AND coalesce(effective_to, 'infinity') > h",
    "mapping": "SELECT h, hash(t) AS x FROM hours JOIN (SELECT cluster, "
    "unnest([valid_from, valid_to]) AS t FROM org_map) "
    "ON (cluster = ? OR cluster IS NULL) AND t > h AND t < h + INTERVAL 1 HOUR",
}  # fmt: skip

# Facts that many sites have none of: asked about together first, so that each costs nothing there.
_OFTEN_EMPTY = {
    "state": "node_state", "reservation": "reservation", "mig": "mig_instance",
    "fatal": "event", "checkpoint": "event", "learnt": "event", "seen": "device_seen",
    "declared": "checkpoint_interval", "queue": "queue_snapshot", "mapping": "org_map",
}  # fmt: skip

# The fold does not depend on order and does not forget doubles.
_FOLD = (
    "SELECT h, count(*) AS n, "
    "CAST(sum(x % 4503599627370496) % 4503599627370496 AS BIGINT) AS x FROM ({0}) GROUP BY h"
)

# A sample bears on the hour that it ends in and on the one that it may reach back to.
_SAMPLES = """
SELECT time_bucket(INTERVAL 1 HOUR, ts - INTERVAL 1 MICROSECOND) AS h,
  time_bucket(INTERVAL 1 HOUR, ts - to_microseconds(2 * CAST(floor(step_s * 1e6 + 0.5) AS BIGINT)))
    AS begins,
  count(*) AS n
FROM sample WHERE cluster = ? AND ts > ? AND ts <= ? GROUP BY ALL"""


def facts_hashes(work: Work, cluster: str, since: datetime, until: datetime) -> dict[datetime, str]:
    """``hash:samples`` of each whole hour in which the cluster has an inventory."""
    counts = sample_counts(work, cluster, since, until)
    digests = fact_digests(work, cluster, since, until)
    return {hour: f"{digest}:{counts.get(hour, 0)}" for hour, digest in digests.items()}


def fact_digests(work: Work, cluster: str, since: datetime, until: datetime) -> dict[datetime, str]:
    """A hash of the facts but the samples of each whole hour in which the cluster has an
    inventory."""
    texts: dict[datetime, list[str]] = defaultdict(list)
    labels = sorted(label_keys(work))
    parts_of = {**_PARTS, "labels": _LABELLED} if labels else _PARTS
    empty = _empty(work)
    for name, sql in parts_of.items():
        if _OFTEN_EMPTY.get(name) in empty:
            continue
        for row in work.rows(_HOURS + _FOLD.format(sql), [since, until, cluster]):
            texts[row["h"]].append(f"{name}={row['n']}/{row['x']}")
    aliases = work.value(
        "SELECT CAST(sum(hash(raw_name, gpu_model) % 65536) AS BIGINT) FROM gpu_model_alias"
    )
    common: dict[datetime, str] = {}
    result = {}
    for hour, parts in texts.items():
        day = hour.replace(hour=0)
        if any(part.startswith("node=") for part in parts):
            if day not in common:
                common[day] = f"{_rules(work, cluster, day)}|{aliases}"
                common[day] += f"|{labels}" if labels else ""
            result[hour] = _digest(sorted(parts), common[day])
    return result


def _empty(work: Work) -> set[str]:
    """The tables of `_OFTEN_EMPTY` that have no row at all."""
    tables = set(_OFTEN_EMPTY.values())
    # One row each, if any: as columns of one row they take ten times as long to plan.
    one = " UNION ALL ".join(f"(SELECT '{name}' AS name FROM {name} LIMIT 1)" for name in tables)  # noqa: S608 - our own names
    return tables - {row["name"] for row in work.rows(one)}


def sample_counts(
    work: Work, cluster: str, since: datetime, until: datetime
) -> dict[datetime, int]:
    """How many samples bear on each hour."""
    counts: dict[datetime, int] = defaultdict(int)
    for row in work.rows(_SAMPLES, [cluster, since, until + timedelta(hours=1)]):
        for hour in {row["h"], row["begins"]}:
            counts[hour] += row["n"]
    return counts


def _rules(work: Work, cluster: str, day: datetime) -> str:
    """The settings and the demand profile that decide a day."""
    settings = settings_at(work, cluster, day)
    return f"{settings}|{demand_profile(work, cluster, day, settings).profile_hash}"


def _digest(parts: list[str], common: str) -> str:
    return hashlib.sha256("|".join([*parts, common]).encode()).hexdigest()[:16]


def samples_in(facts_hash: str | None) -> int:
    """How many samples an hour was made of."""
    return 0 if facts_hash is None else int(facts_hash.split(":")[1])


def recorded_hashes(
    work: Work, cluster: str, since: datetime, until: datetime, *, any_rules: bool = False
) -> dict[datetime, str]:
    """What the hours in the ledger were made of; under older rules only with ``any_rules``."""
    rows = work.rows(
        "SELECT hour, facts_hash, rules_version FROM ledger_build WHERE cluster = ? AND hour >= ? "
        "AND hour < ?",
        [cluster, since, until],
    )
    return {
        row["hour"]: row["facts_hash"]
        for row in rows
        if any_rules or row["rules_version"] == RULES_VERSION
    }


def older(have: str | None, now: str) -> bool:
    """Whether facts changed; samples that retention dropped change nothing."""
    if have is None or have.split(":")[0] != now.split(":")[0]:
        return True
    return samples_in(now) > samples_in(have)


def stale_hours(work: Work, cluster: str, since: datetime, until: datetime) -> list[datetime]:
    """The hours whose accounts are missing or older than their facts."""
    now = facts_hashes(work, cluster, since, until)
    have = recorded_hashes(work, cluster, since, until)
    return sorted(hour for hour in now if older(have.get(hour), now[hour]))
