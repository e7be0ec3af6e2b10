"""What-if: what would another policy do?"""

from __future__ import annotations

import streamlit as st

from dashboard.frame import open_page
from dashboard.whatif import asked, follow, proposals_table, result_shown, style

page = open_page("whatif")
style()
wish, cluster = asked(page)
run = follow(page, cluster, wish)
if run is not None and run.result is not None:
    result_shown(page, run)
proposals_table(page, cluster)
if run is None:
    st.stop()
