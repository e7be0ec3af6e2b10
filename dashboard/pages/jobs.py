"""Jobs: what happened to this job?"""

from __future__ import annotations

from analytics.window import Window
from dashboard.frame import open_page
from dashboard.jobs import card, listing

page = open_page("jobs")
view = page.view
if view.job:
    card(page, view.job)
else:
    listing(page, Window(view.since, view.until, view.zone))
