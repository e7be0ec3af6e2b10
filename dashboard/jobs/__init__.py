"""The pieces of the Jobs page."""

from dashboard.jobs.card import card
from dashboard.jobs.listing import listing

__all__ = ["card", "listing"]
