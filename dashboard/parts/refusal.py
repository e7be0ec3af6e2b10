"""What was refused, in the language of the page."""

from __future__ import annotations

from dashboard.words import Words
from scheduler_advisor.errors import AdvisorError
from scheduler_advisor.messages import Words as Sentences
from scheduler_advisor.messages import refusals
from scheduler_advisor.withheld import WithheldError


def refusal_text(error: AdvisorError | str, words: Words) -> str:
    """The text of an error, or of one that was kept as text."""
    sentences = Sentences(words.language)
    if isinstance(error, WithheldError):
        return error.said(sentences)
    return refusals.said(str(error), sentences)
