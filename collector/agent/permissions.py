"""What this process may do on its node, and what it costs where it may not."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path

# linux/capability.h: number, name, and what is lost without it.
_CAPABILITIES = (
    (
        19,
        "CAP_SYS_PTRACE",
        "environments of other users cannot be read: a job whose control group does not name it "
        "(SLUID, ssh) is known by its user only, and MPS shares count as equal",
    ),
    (
        2,
        "CAP_DAC_READ_SEARCH",
        "files of other users' processes cannot be read, with the same loss as CAP_SYS_PTRACE",
    ),
    (
        21,
        "CAP_SYS_ADMIN",
        "some drivers keep GPM, accounting and MIG placements from others: those values say "
        "no_permission, and claims of MIG slices (DRA) cannot be told apart",
    ),
    (34, "CAP_SYSLOG", "Xids that the driver does not report as events are missed"),
)
_TIME_ERROR = 5  # adjtimex: the clock is not held to anything
_TIMEX_BYTES = 512  # more than any kernel's struct timex


def missing_capabilities(proc: Path = Path("/proc")) -> Iterator[tuple[str, str]]:
    """(capability, what it costs) for each that this process lacks; nothing where it is unknown."""
    try:
        status = (proc / "self/status").read_text()
        mask = int(status.split("CapEff:")[1].split()[0], 16)
    except (OSError, ValueError, IndexError):
        return
    for number, name, cost in _CAPABILITIES:
        if not mask >> number & 1:
            yield name, cost


def clock_is_held() -> bool | None:
    """Whether the kernel says that something (NTP, PTP) keeps the clock; None where it does not."""
    try:
        state = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    except (OSError, AttributeError):
        return None
    return None if state < 0 else state != _TIME_ERROR
