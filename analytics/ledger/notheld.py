"""The columns of what the sweep posts: every class, then every overlay."""

from __future__ import annotations

import numpy as np

from analytics.ledger.classes import CLASSES, INDEX, LedgerClass, Overlay
from analytics.ledger.kernel import state as k

OVERLAY_INDEX = {name: CLASSES + place for place, name in enumerate(Overlay)}
WIDTH = CLASSES + len(OVERLAY_INDEX)
_TARGET = {
    k.C_FAILED: INDEX[LedgerClass.FAILED],
    k.C_DRAINED: INDEX[LedgerClass.DRAINED],
    k.C_UNKNOWN: INDEX[LedgerClass.UNKNOWN],
    k.C_RESERVED: INDEX[LedgerClass.RESERVED],
    k.C_CPU: INDEX[LedgerClass.STRANDED_CPU],
    k.C_MEM: INDEX[LedgerClass.STRANDED_MEM],
    k.C_LOW: OVERLAY_INDEX[Overlay.STRANDED_LOW],
    k.C_HIGH: OVERLAY_INDEX[Overlay.STRANDED_HIGH],
    k.C_ROGUE: INDEX[LedgerClass.UNATTRIBUTED],
    k.C_FREE: INDEX[LedgerClass.FREE],
    k.C_GANG: INDEX[LedgerClass.GANG_WAIT],
    k.C_CPU_REQUEST: INDEX[LedgerClass.STRANDED_CPU],
    k.C_MEM_REQUEST: INDEX[LedgerClass.STRANDED_MEM],
    k.C_SHAPE: INDEX[LedgerClass.STRANDED_SHAPE],
    k.C_TOPOLOGY: INDEX[LedgerClass.STRANDED_TOPOLOGY],
    k.C_ORDER: INDEX[LedgerClass.POLICY_BLOCKED],
    k.C_LIMIT: INDEX[LedgerClass.POLICY_BLOCKED],
    k.C_FILLABLE: OVERLAY_INDEX[Overlay.FILLABLE],
}
TARGETS = np.array([_TARGET[code] for code in range(k.CODES)], np.int64)
"""Where the sweep posts each of its codes."""
