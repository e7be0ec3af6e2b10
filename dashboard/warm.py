"""Loads what pages need before the first visitor waits for it: a second of imports."""

import dashboard.fleet
import dashboard.frame
import dashboard.health
import dashboard.jobs
import dashboard.overview
import dashboard.queue
import dashboard.sidebar
import dashboard.stranding
import dashboard.teams  # noqa: F401 - importing is what it is for
