"""The colour and pattern of each ledger class: the same as on every page (a test compares them)."""

from __future__ import annotations

INK = "#1b2430"
MUTED = "#5a6876"
LINE = "#dde3ea"
ACCENT = "#0b5c8e"

# class -> (colour, pattern); in the order of a bar from left to right: used first, free last
CLASS_STYLES: dict[str, tuple[str, str]] = {
    "used": ("#0b5c8e", ""),
    "allocated_idle": ("#f2c14e", ""),
    "allocated_unmeasured": ("#8e99a5", "."),
    "lost": ("#85335b", "x"),
    "unattributed": ("#d3c7e6", "\\"),
    "failed_held": ("#a4262c", "x"),
    "stranded_cpu": ("#e8751a", "/"),
    "stranded_mem": ("#f6a45c", "/"),
    "stranded_shape": ("#a63f03", "/"),
    "stranded_topology": ("#fbc794", "/"),
    "gang_wait": ("#c8a2d4", "\\"),
    "policy_blocked": ("#6a51a3", "\\"),
    "reserved": ("#7f93a8", ""),
    "drained": ("#b98d86", "x"),
    "failed": ("#7a1f24", "x"),
    "unknown": ("#c9d0d8", "."),
    "free": ("#bfdbe8", ""),
}
