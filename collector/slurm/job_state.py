"""Slurm's job states into the closed set of the model."""

from __future__ import annotations

_STATES = {
    "PENDING": "PENDING", "PD": "PENDING", "RESV_DEL_HOLD": "PENDING",
    "RUNNING": "RUNNING", "R": "RUNNING", "COMPLETING": "RUNNING", "CG": "RUNNING",
    "CONFIGURING": "RUNNING", "CF": "RUNNING", "RESIZING": "RUNNING", "RS": "RUNNING",
    "SIGNALING": "RUNNING", "SI": "RUNNING", "STAGE_OUT": "RUNNING", "SO": "RUNNING",
    "EXPEDITING": "RUNNING",
    "SUSPENDED": "SUSPENDED", "S": "SUSPENDED", "STOPPED": "SUSPENDED", "ST": "SUSPENDED",
    "COMPLETED": "COMPLETED", "CD": "COMPLETED",
    "CANCELLED": "CANCELLED", "CA": "CANCELLED", "REVOKED": "CANCELLED", "RV": "CANCELLED",
    "FAILED": "FAILED", "F": "FAILED", "LAUNCH_FAILED": "FAILED", "RECONFIG_FAIL": "FAILED",
    "SPECIAL_EXIT": "FAILED", "SE": "FAILED",
    "TIMEOUT": "TIMEOUT", "TO": "TIMEOUT", "DEADLINE": "TIMEOUT", "DL": "TIMEOUT",
    "OUT_OF_MEMORY": "OUT_OF_MEMORY", "OOM": "OUT_OF_MEMORY",
    "PREEMPTED": "PREEMPTED", "PR": "PREEMPTED",
    "NODE_FAIL": "NODE_FAIL", "NF": "NODE_FAIL", "BOOT_FAIL": "NODE_FAIL", "BF": "NODE_FAIL",
    "REQUEUED": "REQUEUED", "RQ": "REQUEUED", "REQUEUE_HOLD": "REQUEUED", "RH": "REQUEUED",
    "REQUEUE_FED": "REQUEUED", "RF": "REQUEUED",
}  # fmt: skip
UNKNOWN = "UNKNOWN"
OPEN = frozenset({"PENDING", "RUNNING", "SUSPENDED"})
"""States in which a run has no end yet."""


def state_of(text: str) -> str:
    """The model's state for ``CANCELLED by 1000``, ``OUT_OF_ME+``, ``CD``; UNKNOWN if none fits."""
    words = text.split()
    if not words:
        return UNKNOWN
    word = words[0].upper()
    if not word.endswith("+"):
        return _STATES.get(word, UNKNOWN)
    stem = word[:-1]
    meant = {state for name, state in _STATES.items() if len(stem) > 2 and name.startswith(stem)}
    return meant.pop() if len(meant) == 1 else UNKNOWN
