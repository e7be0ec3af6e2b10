"""Texts of a policy's keys, read as the kind of value that each key has."""

from __future__ import annotations

from enum import StrEnum

from scheduler_advisor.engine.errors import PolicyError


def read_value(key: str, old: object, text: str) -> object:
    """``text`` as the kind of value that ``old`` is. Raises PolicyError with the key."""
    if isinstance(old, StrEnum):
        try:
            return type(old)(text)
        except ValueError:
            known = ", ".join(type(old))
            raise PolicyError(f"policy: {key} = {text} is not one of {known}") from None
    if isinstance(old, bool):
        if text.lower() not in ("true", "false"):
            raise PolicyError(f"policy: {key} = {text}; must be true or false")
        return text.lower() == "true"
    if isinstance(old, int):
        return whole(key, text)
    try:
        return type(old)(text)  # type: ignore[call-arg]
    except ValueError:
        raise PolicyError(f"policy: {key} = {text}; must be a number") from None


def whole(key: str, value: object) -> int:
    """A whole number."""
    try:
        return int(str(value))
    except ValueError:
        raise PolicyError(f"policy: {key} = {value}; must be a whole number") from None
