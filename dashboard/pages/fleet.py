"""Fleet: what are the GPUs doing?"""

from __future__ import annotations

from analytics.window import Window
from dashboard import data
from dashboard.fleet import (
    answer_text,
    blast_table,
    fleet_chart,
    health_table,
    mig_boards,
    nvlink_islands,
    rack_network,
)
from dashboard.fleet.map import step_hours
from dashboard.frame import answer, open_page
from dashboard.instant import asked_moment
from dashboard.overview import broken_list

page = open_page("fleet")
view, words = page.view, page.words
window = Window(view.since, view.until, view.zone)
step_h = step_hours(view.days)
cells = data.fleet(page.path, window, step_h, view.cluster)
report = data.ledger(page.path, window, ("class",), view.cluster, view.currency)

answer(answer_text(cells, words), page, report.coverage_ratio, report.price_book)
fleet_chart(page, cells, step_h)
broken_list(page)
health_table(page, data.node_health(page.path, window, view.cluster))
at = asked_moment(page)
blast_table(page, data.blast(page.path, at, view.cluster))
mig_boards(page, data.mig(page.path, at, view.cluster))
nvlink_islands(page, data.islands(page.path, at, view.cluster))
rack_network(page, data.network(page.path, window, view.cluster))
