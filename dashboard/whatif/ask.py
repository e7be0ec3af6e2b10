"""What is to be tried: a preset, the few sliders that matter, and single keys."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from dashboard.frame import Page
from dashboard.words import Words
from scheduler_advisor.engine.presets import SCHEDULERS
from scheduler_advisor.whatif.wish import TODAY, Wish

_STYLE = Path(__file__).with_name("style.css")
PRESETS = (TODAY, "fifo", "easy", "conservative", "greedy", "sjf", *SCHEDULERS)
SAME = ""
ORDERS = (SAME, "fifo", "priority", "largest-first", "sjf-limit", "multifactor", "fair-share")
BACKFILLS = (SAME, "none", "easy", "conservative", "greedy")
PLACEMENTS = (SAME, "best-fit", "worst-fit", "consolidate", "fgd", "topology")
ESTIMATES = (0.0, *(half / 2 for half in range(2, 21)))  # times the run time; 0: as it is
ALTERS = (SAME, "cap_cpu", "cap_memory")


def style() -> None:
    """The look of the page's own pieces."""
    st.html(_STYLE)


def asked(page: Page) -> tuple[Wish, str]:
    """The candidate in the form, and the cluster that it is tried on."""
    words = page.words
    cluster = page.view.cluster or page.span.clusters[0]
    one, two, three, four = st.columns(4, gap="small")
    with one:
        base = _choice(words, "base", PRESETS)
    with two:
        order = _choice(words, "order", ORDERS)
    with three:
        backfill = _choice(words, "backfill", BACKFILLS)
    with four:
        placement = _choice(words, "placement", PLACEMENTS)
    left, middle, right, last = st.columns(4, gap="small")
    with left:
        nodes = st.slider(words("whatif.nodes"), -20, 20, 0, key="whatif_nodes")
    with middle:
        load = st.slider(words("whatif.load"), 0.5, 1.5, 1.0, 0.05, key="whatif_load",
                         format="× %.2f")  # fmt: skip
    with right:
        estimate = st.select_slider(
            words("whatif.estimate"), ESTIMATES, key="whatif_estimate",
            format_func=lambda times: f"× {times:g}" if times else words("whatif.as_now"),
            help=words("whatif.estimate_help"),
        )  # fmt: skip
    with last:
        alter = _choice(words, "alter", ALTERS)
    keys = {"order": order, "backfill": backfill, "placement": placement}
    with st.expander(words("whatif.keys")):
        text = st.text_area(words("whatif.keys_text"), key="whatif_keys", height=90,
                            placeholder="preemption = priority\nsharing = mig")  # fmt: skip
    values = {name: value for name, value in keys.items() if value} | _pairs(text)
    return (
        Wish(base, tuple(sorted(values.items())), nodes, round(load, 2), estimate, alter),
        cluster,
    )


def _choice(words: Words, name: str, options: tuple[str, ...]) -> str:
    same = words("whatif.as_now") if name != "base" else ""
    shown = {TODAY: words("whatif.today"), SAME: same, "cap_cpu": words("whatif.cap_cpu"),
             "cap_memory": words("whatif.cap_memory")}  # fmt: skip
    return st.selectbox(
        words(f"whatif.{name}"), options, key=f"whatif_{name}",
        format_func=lambda value: shown.get(value, value),
    )  # fmt: skip


def _pairs(text: str) -> dict[str, str]:
    """``key = value`` lines; the policy itself refuses what it does not know, such as a line
    without a value."""
    lines = (line.partition("=") for line in text.splitlines() if line.strip())
    return {key.strip(): value.strip().strip('"') for key, _, value in lines}
