"""A replay that is withheld is a result: it says what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler_advisor.errors import AdvisorError
from scheduler_advisor.messages import Words, refusals


class WithheldError(AdvisorError):
    """Too little is known to replay. ``reason``: a key of the messages under ``reason``, with its
    numbers, for those who say it in another language."""

    def __init__(self, reason: str, params: Mapping[str, Any]) -> None:
        self.reason, self.params = reason, dict(params)
        super().__init__(self.said(Words("en")))

    def __reduce__(self) -> tuple[type[WithheldError], tuple[str, dict[str, Any]]]:
        return (WithheldError, (self.reason, self.params))

    def said(self, words: Words) -> str:
        """The reason in the language of ``words``."""
        return words.say(f"reason.{self.reason}", refusals.said_in(self.params, words))
