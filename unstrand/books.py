"""The price book as it is shown."""

from __future__ import annotations

from typing import Any

from collector.store import Work


def price_rows(work: Work) -> list[dict[str, Any]]:
    """Every price that was not replaced by a corrected one, by model and start."""
    return work.rows(
        "SELECT cluster, gpu_model, purchase_type, amount, currency, kind, free, "
        "effective_from, effective_to, source, retrieved_on FROM price "
        "WHERE retired_at IS NULL ORDER BY gpu_model, cluster NULLS FIRST, effective_from"
    )
