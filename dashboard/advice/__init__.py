"""The Advice page: the weekly report's changes, and what people make of them."""

from dashboard.advice.actions import whole_card
from dashboard.advice.cards import headline_tiles, style
from dashboard.advice.followed import followed_up
from dashboard.advice.making import making
from dashboard.advice.source import Newest, newest

__all__ = [
    "Newest",
    "followed_up",
    "headline_tiles",
    "making",
    "newest",
    "style",
    "whole_card",
]
