"""Colours: one per ledger class, apart in grey, readable on paper."""

from __future__ import annotations

from itertools import pairwise

from analytics.ledger import LedgerClass
from dashboard.palette import (
    ACCENT,
    BAD,
    CLASSES,
    GOOD,
    HELD,
    INK,
    MUTED,
    NOT_HELD,
    PAPER,
    WARN,
    contrast,
    luminance,
    text_on,
)


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


def test_contrast_is_that_of_the_standard():
    assert (luminance("#000000"), round(luminance("#ffffff"), 9)) == (0, 1)
    assert round(contrast("#000000", "#ffffff"), 6) == 21
    assert round(contrast("#777777", "#ffffff"), 2) == 4.48


def test_text_can_be_read_on_every_bar():
    for name, style in CLASSES.items():
        assert contrast(text_on(style.colour), style.colour) >= 4.5, name
