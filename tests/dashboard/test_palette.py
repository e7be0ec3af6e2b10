"""Colours: one per ledger class, apart in grey, readable on paper."""

from __future__ import annotations

from itertools import pairwise

from analytics.ledger import LedgerClass
from dashboard.palette import ACCENT, BAD, CLASSES, GOOD, HELD, INK, MUTED, NOT_HELD, PAPER, WARN


def luminance(colour):
    def linear(part):
        value = int(part, 16) / 255
        return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(colour[i : i + 2]) for i in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_every_ledger_class_has_a_colour_of_its_own():
    assert set(CLASSES) == {name.value for name in LedgerClass}
    assert len({style.colour for style in CLASSES.values()}) == len(CLASSES)


def test_neighbours_differ_in_grey_or_by_pattern():
    for family in (NOT_HELD, HELD):
        styles = list(family.items())
        for (one, a), (other, b) in pairwise(styles):
            apart = contrast(a.colour, b.colour) >= 1.3 or a.pattern != b.pattern
            assert apart, f"{one} and {other} look alike in grey"


def test_used_and_idle_are_told_apart_by_everybody():
    assert contrast(CLASSES["used"].colour, CLASSES["allocated_idle"].colour) >= 3


def test_text_can_be_read_on_paper():
    for colour in (INK, MUTED, ACCENT, BAD, GOOD, WARN):
        assert contrast(colour, PAPER) >= 4.5
