"""The ledger: every GPU-second of a cluster in exactly one class, at one price."""

from analytics.ledger.build import build, clusters, ensure_built
from analytics.ledger.classes import HELD, NOT_HELD, STRANDED, LedgerClass, Overlay
from analytics.ledger.warming import warm

__all__ = [
    "HELD",
    "NOT_HELD",
    "STRANDED",
    "LedgerClass",
    "Overlay",
    "build",
    "clusters",
    "ensure_built",
    "warm",
]
