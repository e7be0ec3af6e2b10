"""The one form in which a broken input is refused."""

from __future__ import annotations

from collector.errors import ImportRefusedError

_SHOWN = 60


def refusal(source: str, line: int | None, what: str, remedy: str) -> ImportRefusedError:
    """The error that says which source, which line (from 1), what is wrong and what to do."""
    place = source if line is None else f"{source}, line {line}"
    return ImportRefusedError(f"{place}: {what}. {remedy}. Nothing was imported.")


def shown(text: str) -> str:
    """``text`` quoted for a message, cut where it is long."""
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")


class MalformedError(ValueError):
    """A single value that does not follow its grammar; the reader adds source, line and remedy."""
