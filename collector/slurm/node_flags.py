"""Node states such as ``MIXED+DRAIN+PLANNED`` or ``DOWN*`` into the model's closed set."""

from __future__ import annotations

import re

_SUFFIXES = re.compile(r"[*~#!%$@^\-&]+\Z")
_WORDS = {
    "DOWN": "down", "FAIL": "failed", "FAILING": "failed", "ERROR": "failed",
    "NOT_RESPONDING": "down", "NO_RESPOND": "down", "UNKNOWN": "down", "FUTURE": "down",
    "INVALID_REG": "drained", "INVAL": "drained",
    "POWERED_DOWN": "powered_down", "POWERING_DOWN": "powered_down", "POWER_DOWN": "powered_down",
    "POWERING_UP": "powered_down", "POWER_UP": "powered_down", "POWER_SAVING": "powered_down",
    "CLOUD": "",
    "REBOOT_ISSUED": "rebooting", "REBOOT": "rebooting", "REBOOT_REQUESTED": "",
    "MAINT": "maintenance", "MAINTENANCE": "maintenance",
    "DRAIN": "drained", "DRAINED": "drained", "DRAINING": "drained",
}  # fmt: skip
_FROM_SUFFIX = {
    "*": "down",
    "~": "powered_down",
    "#": "powered_down",
    "%": "powered_down",
    "@": "rebooting",
    "$": "maintenance",
}
_ORDER = ("down", "failed", "rebooting", "maintenance", "powered_down", "drained")


def state_of(text: str) -> str | None:
    """Why the node takes no new work (down, failed, rebooting, maintenance, powered_down, drained).

    None = it does take work. The first of that order wins where several hold; a node that has not
    answered (``*``) is down. Words that are unknown, and ``REBOOT_REQUESTED``, take nothing away.
    """
    found: set[str] = set()
    for word in text.split()[0].split("+") if text.split() else ():
        suffix = _SUFFIXES.search(word)
        stem = word[: suffix.start()] if suffix else word
        found.add(_WORDS.get(stem.upper(), ""))
        if suffix:
            found |= {_FROM_SUFFIX.get(mark, "") for mark in suffix.group()}
    return next((state for state in _ORDER if state in found), None)
