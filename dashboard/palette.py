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


def luminance(colour: str) -> float:
    """Relative luminance of ``#rrggbb`` (WCAG 2, formula of sRGB), 0 black to 1 white."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours (WCAG 2), 1 to 21."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def text_on(colour: str) -> str:
    """The text colour that reads best on ``colour``."""
    return max((INK, PAPER), key=lambda text: contrast(text, colour))


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
    "stranded_cpu": ClassStyle("#e8751a", "/"),
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

# For teams, which have no fixed colour: distinct for colour-blind people (after Okabe and Ito),
# apart from the orange of stranding; a legend and the hover text name them all the same.
_TEAMS = ("#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c564b", "#5a3f8f", "#7a8b00")


def team_colours(teams: list[str]) -> dict[str, str]:
    """A colour per team, in the order given; the list repeats after eight."""
    return {team: _TEAMS[place % len(_TEAMS)] for place, team in enumerate(teams)}
