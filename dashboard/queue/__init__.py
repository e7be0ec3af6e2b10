"""The pieces of the Queue page."""

from dashboard.queue.charts import distribution_chart, hour_chart
from dashboard.queue.head import head_of_queue
from dashboard.queue.headline import answer_text, headline_tiles
from dashboard.queue.tables import queue_table, size_table, team_table

__all__ = [
    "answer_text",
    "distribution_chart",
    "head_of_queue",
    "headline_tiles",
    "hour_chart",
    "queue_table",
    "size_table",
    "team_table",
]
