"""Whether a value came, and if not, why."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """Why a value is or is not there. Only OK has a value; absent is never zero."""

    OK = "ok"
    NOT_SUPPORTED = "not_supported"  # this GPU, mode or driver does not have it
    NO_PERMISSION = "no_permission"  # it has it, but not for this process
    LOST = "lost"  # the device fell off the bus or needs a reset
    STALE = "stale"  # nothing new since the last reading
    IMPLAUSIBLE = "implausible"  # it came, but cannot be true
    SHARED = "shared"  # counted once, on the first compute instance of its GPU instance
    FAILED = "failed"  # the driver answered with an error that says no more
