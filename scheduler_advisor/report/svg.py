"""Plots as inline SVG: they read offline, print sharp and carry their numbers as text."""

from __future__ import annotations

from collections.abc import Sequence

from scheduler_advisor.report.colours import ACCENT, CLASS_STYLES, INK, LINE, MUTED
from scheduler_advisor.report.markup import Markup, tag

_PATTERN_LINES = {
    "/": ("M0,6 L6,0",),
    "\\": ("M0,0 L6,6",),
    "x": ("M0,6 L6,0", "M0,0 L6,6"),
    ".": ("M2,3 L4,3",),
}


def _patterns(names: Sequence[str]) -> Markup:
    """A hatch for each class that has one, to lie over its colour; each picture has its own."""
    made = []
    for name in names:
        lines = [
            tag("path", d=d, stroke="#ffffff", stroke_opacity=0.55, stroke_width=1.4)
            for d in _PATTERN_LINES.get(CLASS_STYLES[name][1], ())
        ]
        if lines:
            made.append(
                tag("pattern", *lines, id=f"c-{name}", width=6, height=6,
                    patternUnits="userSpaceOnUse")
            )  # fmt: skip
    return tag("defs", *made)


def swatch(name: str) -> Markup:
    """A small square in a class's colour and pattern."""
    colour, pattern = CLASS_STYLES[name]
    lines = [
        tag("path", d=d, transform="scale(1.8)", stroke="#ffffff", stroke_opacity=0.7)
        for d in _PATTERN_LINES.get(pattern, ())
    ]
    square = tag("rect", width=11, height=11, rx=2, fill=colour)
    return tag("svg", square, *lines, width=11, height=11, aria_hidden="true")


def stacked_bar(shares: Sequence[tuple[str, float, str]], label: str) -> Markup:
    """One bar of (class, share of the whole, text); text stands in parts of 5% and more."""
    x, parts = 0.0, []
    for name, share, text in shares:
        width = share * 1164
        box = {"x": f"{x:.2f}", "y": 0, "width": f"{max(width, 0):.2f}", "height": 26}
        colour, pattern = CLASS_STYLES[name]
        parts.append(tag("rect", tag("title", text), fill=colour, stroke="#ffffff", **box))
        if pattern:
            parts.append(tag("rect", fill=f"url(#c-{name})", **box))
        if share >= 0.05:
            fill = "#ffffff" if name in ("used", "stranded_shape", "failed") else INK
            parts.append(
                tag("text", f"{share:.0%}", x=f"{x + width / 2:.2f}", y=18, text_anchor="middle",
                    fill=fill, font_size=13, font_weight=600)
            )  # fmt: skip
        x += width
    hatches = _patterns([name for name, *_ in shares])
    return tag("svg", tag("title", label), hatches, *parts, viewBox="0 0 1164 26", role="img",
               preserveAspectRatio="none", cls="stack")  # fmt: skip


def range_bar(low: float, point: float | None, high: float, most: float) -> Markup:
    """The 80% interval as a line and the point as a dot, on a scale that ends at ``most``; no dot
    where no point is promised."""
    scale = 150 / most if most > 0 else 0.0
    a, b, c = (4 + max(value or 0.0, 0.0) * scale for value in (low, point, high))
    return tag(
        "svg",
        tag("line", x1=4, x2=154, y1=7, y2=7, stroke=LINE, stroke_width=2),
        tag("line", x1=f"{a:.1f}", x2=f"{c:.1f}", y1=7, y2=7, stroke=ACCENT, stroke_width=4,
            stroke_opacity=0.45, stroke_linecap="round"),
        None if point is None else tag("circle", cx=f"{b:.1f}", cy=7, r=4.2, fill=ACCENT),
        width=160, height=14, viewBox="0 0 160 14", aria_hidden="true", cls="range",
    )  # fmt: skip


def columns(
    values: Sequence[tuple[str, float, str]], label: str, *, every: int = 1,
    only_most: bool = False, colour: str = ACCENT,
) -> Markup:  # fmt: skip
    """Columns of (name below, value, text above); ``only_most``: the text stands above the highest
    only, and all of them to who points at a column."""
    most = max((value for _, value, _ in values), default=0.0) or 1.0
    step = 560 / max(len(values), 1)
    parts = [tag("line", x1=0, x2=560, y1=120, y2=120, stroke=MUTED, stroke_width=1)]
    for place, (name, value, text) in enumerate(values):
        height, x = value / most * 96, place * step
        parts.append(
            tag("rect", tag("title", f"{name}: {text}"), x=f"{x + step * 0.12:.1f}",
                y=f"{120 - height:.1f}", width=f"{step * 0.76:.1f}", height=f"{height:.1f}",
                fill=colour, rx=2)
        )  # fmt: skip
        middle = f"{x + step / 2:.1f}"
        if text and (value == most or not only_most):
            parts.append(
                tag("text", text, x=middle, y=f"{114 - height:.1f}", text_anchor="middle",
                    font_size=11, fill=INK)
            )  # fmt: skip
        if place % every == 0:
            parts.append(
                tag("text", name, x=middle, y=135, text_anchor="middle", font_size=11, fill=MUTED)
            )
    return tag("svg", tag("title", label), *parts, viewBox="0 0 560 140", role="img", cls="columns")
