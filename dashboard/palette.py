"""One fixed colour and pattern per ledger class, the same on every page and report.

The colours keep apart for the common kinds of colour blindness and by lightness in grey; families
also differ by pattern, and every mark carries its class as text.
"""

from __future__ import annotations

from dataclasses import dataclass

INK = "#1b2430"
MUTED = "#5a6876"
LINE = "#dde3ea"
PAPER = "#ffffff"
SHADE = "#f4f6f8"
ACCENT = "#0b5c8e"
WARN = "#a05a00"
BAD = "#a4262c"
GOOD = "#1b6e4f"


@dataclass(frozen=True, slots=True)
class ClassStyle:
    """How a ledger class is drawn; ``pattern`` is Plotly's name for a hatch, empty for none."""

    colour: str
    pattern: str = ""


def hatch(style: ClassStyle) -> dict[str, object]:
    """The class's pattern over its colour, as Plotly wants it; empty for a plain class."""
    if not style.pattern:
        return {}
    return {
        "shape": style.pattern,
        "fillmode": "overlay",
        "fgcolor": "rgba(255,255,255,0.55)",
        "size": 6,
        "solidity": 0.25,
    }


# In the order in which money runs out on its way from installed to used.
NOT_HELD: dict[str, ClassStyle] = {
    "failed": ClassStyle("#7a1f24", "x"),
    "drained": ClassStyle("#b98d86", "x"),
    "unknown": ClassStyle("#c9d0d8", "."),
    "reserved": ClassStyle("#7f93a8"),
    "gang_wait": ClassStyle("#c8a2d4", "\\"),
    "stranded_cpu": ClassStyle("#d95f0e", "/"),
    "stranded_mem": ClassStyle("#f6a45c", "/"),
    "stranded_shape": ClassStyle("#a63f03", "/"),
    "stranded_topology": ClassStyle("#fbc794", "/"),
    "policy_blocked": ClassStyle("#6a51a3", "\\"),
    "free": ClassStyle("#bfdbe8"),
}
HELD: dict[str, ClassStyle] = {
    "failed_held": ClassStyle("#a4262c", "x"),
    "unattributed": ClassStyle("#d3c7e6", "\\"),
    "allocated_unmeasured": ClassStyle("#8e99a5", "."),
    "allocated_idle": ClassStyle("#f2c14e"),
    "lost": ClassStyle("#85335b", "x"),
    "used": ClassStyle("#0b5c8e"),
}
CLASSES: dict[str, ClassStyle] = NOT_HELD | HELD
STRANDED = ("stranded_cpu", "stranded_mem", "stranded_shape", "stranded_topology")
