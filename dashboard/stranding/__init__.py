"""The pieces of the Stranding page."""

from dashboard.stranding.causes import cause_table, day_charts
from dashboard.stranding.fragmentation import fragmentation_chart
from dashboard.stranding.headline import answer_text, headline_tiles
from dashboard.stranding.now import start_now

__all__ = [
    "answer_text",
    "cause_table",
    "day_charts",
    "fragmentation_chart",
    "headline_tiles",
    "start_now",
]
