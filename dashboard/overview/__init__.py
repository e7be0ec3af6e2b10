"""The pieces of the Overview page."""

from dashboard.overview.best import best_advice
from dashboard.overview.broken import broken_list
from dashboard.overview.charts import daily_chart, waterfall_chart
from dashboard.overview.headline import Headline, answer_text, headline_tiles
from dashboard.overview.week import week_table, weeks

__all__ = [
    "Headline",
    "answer_text",
    "best_advice",
    "broken_list",
    "daily_chart",
    "headline_tiles",
    "waterfall_chart",
    "week_table",
    "weeks",
]
