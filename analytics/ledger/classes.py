"""The classes of a GPU-second and the measures beside them."""

from __future__ import annotations

from enum import StrEnum


class LedgerClass(StrEnum):
    """Every GPU-second is in exactly one class; the order is the order of every listing."""

    USED = "used"
    LOST = "lost"
    ALLOCATED_IDLE = "allocated_idle"
    ALLOCATED_UNMEASURED = "allocated_unmeasured"
    FAILED_HELD = "failed_held"
    UNATTRIBUTED = "unattributed"
    FAILED = "failed"
    DRAINED = "drained"
    UNKNOWN = "unknown"
    RESERVED = "reserved"
    GANG_WAIT = "gang_wait"
    STRANDED_CPU = "stranded_cpu"
    STRANDED_MEM = "stranded_mem"
    STRANDED_SHAPE = "stranded_shape"
    STRANDED_TOPOLOGY = "stranded_topology"
    POLICY_BLOCKED = "policy_blocked"
    FREE = "free"


class Overlay(StrEnum):
    """Measures beside the classes; never part of the identity, never added to them."""

    POSSIBLY_LOST = "possibly_lost"
    SUSPECT_HANG = "suspect_hang"
    FILLABLE = "fillable"
    STRANDED_LOW = "stranded_low"
    STRANDED_HIGH = "stranded_high"
    CONTESTED = "contested"
    VRAM_IDLE = "vram_idle"


HELD = tuple(LedgerClass)[:6]
NOT_HELD = tuple(LedgerClass)[6:]
STRANDED = (
    LedgerClass.STRANDED_CPU,
    LedgerClass.STRANDED_MEM,
    LedgerClass.STRANDED_SHAPE,
    LedgerClass.STRANDED_TOPOLOGY,
)
UNCOVERED = (LedgerClass.UNKNOWN, LedgerClass.ALLOCATED_UNMEASURED)

# The place of each class in the arrays of the sweep.
INDEX = {name: place for place, name in enumerate(LedgerClass)}
CLASSES = len(INDEX)

RULES_VERSION = "4"
"""Changes whenever the same facts would be posted differently; named by every build."""
