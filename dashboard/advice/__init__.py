"""The Advice page: the weekly report's changes, and what people make of them."""

from dashboard.advice.actions import actions, make_button
from dashboard.advice.cards import card, evidence, headline_tiles, style
from dashboard.advice.source import Newest, newest

__all__ = [
    "Newest",
    "actions",
    "card",
    "evidence",
    "headline_tiles",
    "make_button",
    "newest",
    "style",
]
