"""The pieces of the Fleet page."""

from dashboard.fleet.blast import blast_table
from dashboard.fleet.health import health_table
from dashboard.fleet.links import nvlink_islands
from dashboard.fleet.map import answer_text, fleet_chart
from dashboard.fleet.mig import mig_boards
from dashboard.fleet.network import rack_network

__all__ = [
    "answer_text",
    "blast_table",
    "fleet_chart",
    "health_table",
    "mig_boards",
    "nvlink_islands",
    "rack_network",
]
