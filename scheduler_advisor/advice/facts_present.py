"""Which kinds of facts a site has in a window; a rule without its facts says "not measured"."""

from __future__ import annotations

from scheduler_advisor.advice.site import Site

# name of a need -> a question that is true where the facts are there
_QUESTIONS = {
    "scheduler": "SELECT EXISTS (SELECT 1 FROM fact_window WHERE kind = 'scheduler' "
    "AND since < $2 AND until > $1)",
    "activity": "SELECT EXISTS (SELECT 1 FROM advice_cell WHERE used + lost + allocated_idle > 0)",
    "memory": "SELECT EXISTS (SELECT 1 FROM sample WHERE mem_used_mib IS NOT NULL "
    "AND run_id IS NOT NULL AND ts >= $1 AND ts < $2)",
    "power": "SELECT EXISTS (SELECT 1 FROM sample WHERE power_mw IS NOT NULL "
    "AND run_id IS NOT NULL AND ts >= $1 AND ts < $2)",
    "host": "SELECT EXISTS (SELECT 1 FROM host_sample WHERE run_id IS NOT NULL "
    "AND cpu_used IS NOT NULL AND ts >= $1 AND ts < $2)",
    "marks": "SELECT EXISTS (SELECT 1 FROM event WHERE kind = 'checkpoint_end' "
    "AND ts >= $1 AND ts < $2)",
    "quota": "SELECT EXISTS (SELECT 1 FROM quota WHERE valid_from < $2 "
    "AND coalesce(valid_to, $2) > $1)",
    "links": "SELECT EXISTS (SELECT 1 FROM sample WHERE nvlink_tx_bytes IS NOT NULL "
    "AND ts >= $1 AND ts < $2)",
}


def facts_present(site: Site) -> set[str]:
    """The needs that are met."""
    span = [site.window.since, site.window.until]
    return {
        name
        for name, question in _QUESTIONS.items()
        if site.work.value(question, span if "$1" in question else [])
    }
