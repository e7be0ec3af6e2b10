"""The pieces of the Teams page."""

from dashboard.teams.bill import adjustments, bill
from dashboard.teams.charts import bubble_chart, split_chart
from dashboard.teams.drill import drill_down
from dashboard.teams.headline import answer_text
from dashboard.teams.table import team_table

__all__ = [
    "adjustments",
    "answer_text",
    "bill",
    "bubble_chart",
    "drill_down",
    "split_chart",
    "team_table",
]
