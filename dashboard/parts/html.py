"""HTML pieces in the house style; every value from data is escaped here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

import streamlit as st

from dashboard.words import Words


@dataclass(frozen=True, slots=True)
class Tile:
    """One headline figure; ``kind`` observed | modelled | limit, ``ratio`` draws a bar."""

    label: str
    value: str
    kind: str
    help: str = ""
    sub: str = ""
    against: str = ""
    ratio: float | None = None
    good: bool | None = None
    warn: bool = False


def show(markup: str) -> None:
    """Put a piece on the page."""
    st.html(f'<div class="us">{markup}</div>')


def tag(kind: str, words: Words) -> str:
    """What kind of number it is."""
    title = escape(words(f"tag.{kind}_help"))
    return f'<span class="tag {kind}" title="{title}">{escape(words(f"tag.{kind}"))}</span>'


def tiles(items: Iterable[Tile], words: Words) -> str:
    """Headline figures side by side."""
    return '<div class="tiles">' + "".join(_tile(item, words) for item in items) + "</div>"


def _tile(item: Tile, words: Words) -> str:
    bar = ""
    if item.ratio is not None:
        width = max(0.0, min(1.0, item.ratio)) * 100
        tone = " warn" if item.warn else ""
        bar = f'<div class="bar{tone}"><i style="width:{width:.1f}%"></i></div>'
    tone = "" if item.good is None else (" good" if item.good else " bad")
    number, _, unit = item.value.partition(" ")
    against = f'<div class="against{tone}">{escape(item.against)}</div>' if item.against else ""
    return (
        f'<div class="tile" title="{escape(item.help)}"><div class="label">'
        f"<span>{escape(item.label)}</span>{tag(item.kind, words)}</div>"
        f'<div class="value">{escape(number)} <small>{escape(unit)}</small></div>{bar}'
        f'<div class="sub">{escape(item.sub)}</div>{against}</div>'
    )


def heading(text: str, hint: str = "", *, after: str = "") -> str:
    """A section's title with a remark at the right; ``after`` is markup of ours."""
    note = f'<span class="hint">{escape(hint)}</span>' if hint else ""
    return f'<div class="section"><h2>{escape(text)}</h2>{after}{note}</div>'


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a small table; ``text`` aligns left, ``narrow`` False hides it on a phone."""

    title: str
    text: bool = False
    narrow: bool = True


def table(
    columns: Sequence[Column],
    rows: Iterable[Sequence[str]],
    *,
    total: Sequence[str] = (),
    swatches: Sequence[str] = (),
) -> str:
    """A small table of ready texts; ``swatches`` are colours before the first column."""
    head = "".join(f"<th{_classes(c)}>{escape(c.title)}</th>" for c in columns)
    body = "".join(
        f"<tr>{_cells(columns, row, swatches[place] if swatches else '')}</tr>"
        for place, row in enumerate(rows)
    )
    end = f'<tr class="total">{_cells(columns, total, "")}</tr>' if total else ""
    return (
        f'<div class="scroll"><table class="rows"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}{end}</tbody></table></div>"
    )


def _cells(columns: Sequence[Column], row: Sequence[str], swatch: str) -> str:
    mark = f'<span class="swatch" style="background:{swatch}"></span>' if swatch else ""
    cells = []
    for place, (column, value) in enumerate(zip(columns, row, strict=True)):
        cells.append(f"<td{_classes(column)}>{mark if place == 0 else ''}{escape(value)}</td>")
    return "".join(cells)


def _classes(column: Column) -> str:
    names = [name for name, on in (("text", column.text), ("narrow-hide", not column.narrow)) if on]
    return f' class="{" ".join(names)}"' if names else ""


def legend(colours: Mapping[str, str]) -> str:
    """Names with their colour, in lines that wrap."""
    items = "".join(
        f'<span><i style="background:{colour}"></i>{escape(name)}</span>'
        for name, colour in colours.items()
    )
    return f'<div class="legend">{items}</div>'


def strong(text: str) -> str:
    """Escaped text in which ``**word**`` is bold."""
    return re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", escape(text))
