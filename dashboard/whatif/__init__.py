"""The What-if page: a candidate beside today on the window's own jobs."""

from dashboard.whatif.ask import asked, style
from dashboard.whatif.follow import follow
from dashboard.whatif.result import proposals_table, result_shown

__all__ = ["asked", "follow", "proposals_table", "result_shown", "style"]
