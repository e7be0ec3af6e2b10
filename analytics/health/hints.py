"""Which row of the org map would give an unmapped holder an owner."""

from __future__ import annotations

from collections import Counter, defaultdict

from analytics.labels import labels_of
from analytics.window import Window
from collector.store import Store

UNKNOWN = "unknown"
_TEAM_LIKE = ("team", "group", "department", "project", "owner", "app.kubernetes.io/part-of")
"""Labels that name whose work something is, the likeliest first."""
_LABELLED = """
SELECT coalesce(r.user_name, 'unknown') AS user, coalesce(r.account, 'unknown') AS account,
  j.labels, count(DISTINCT r.job_id) AS jobs
FROM job_run r JOIN job j ON j.cluster = r.cluster AND j.job_id = r.job_id
WHERE j.labels IS NOT NULL AND r.start_at < $2 AND coalesce(r.end_at, r.last_known_at, $2) > $1
  AND ($3 IS NULL OR r.cluster = $3)
GROUP BY ALL ORDER BY jobs DESC, 1, 2, 3 LIMIT 10000"""


def hints_for(store: Store, window: Window, cluster: str | None) -> dict[tuple[str, str], str]:
    """(user, account) -> the mapping by the label that most of its jobs carry."""
    seen: dict[tuple[str, str], Counter[tuple[str, str]]] = defaultdict(Counter)
    for row in store.rows(_LABELLED, [window.since, window.until, cluster]):
        for key, value in labels_of(row["labels"]).items():
            if key in _TEAM_LIKE:
                seen[row["user"], row["account"]][key, value] += row["jobs"]
    return {holder: _hint(found) for holder, found in seen.items()}


def _hint(found: Counter[tuple[str, str]]) -> str:
    (key, value), jobs = min(
        found.items(), key=lambda i: (_TEAM_LIKE.index(i[0][0]), -i[1], i[0][1])
    )
    return f"key_kind label:{key}, key_value {value}: on {jobs} of its jobs"


def plain_hint(user: str, account: str) -> str:
    """The mapping by account, else by user."""
    if account != UNKNOWN:
        return f"key_kind account, key_value {account}"
    return f"key_kind user, key_value {user}"
