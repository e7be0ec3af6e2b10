"""The pieces of the Fleet page."""

from dashboard.fleet.health import health_table
from dashboard.fleet.map import answer_text, fleet_chart
from dashboard.fleet.mig import mig_boards

__all__ = ["answer_text", "fleet_chart", "health_table", "mig_boards"]
