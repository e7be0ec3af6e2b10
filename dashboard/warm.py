"""Loads what pages need before the first visitor waits for it: a second of imports."""

import dashboard.frame
import dashboard.health
import dashboard.overview
import dashboard.sidebar
import dashboard.teams  # noqa: F401 - importing is what it is for
