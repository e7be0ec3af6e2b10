"""A report's HTML as lines that a person can compare: words, structure and the plots' data."""

from __future__ import annotations

from html.parser import HTMLParser

LOOKS = {"stroke", "stroke-width", "stroke-opacity", "stroke-linecap", "font-size", "font-weight",
         "text-anchor", "rx", "style", "preserveaspectratio", "patternunits"}  # fmt: skip
INLINE = {"b", "i", "em", "span", "a", "code", "small", "strong", "td", "th", "tspan"}
EMPTY = {"meta", "br", "hr", "img", "input", "link"}


class Outline(HTMLParser):
    """One line per element, deeper ones further in; cells and emphasis stay in their line."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.deep = 0
        self._skipped = ""

    def handle_starttag(self, tag, attrs):
        if self._skipped:
            return
        told = dict(attrs)
        if tag in ("style", "defs") or (tag == "svg" and "aria-hidden" in told
                                        and "class" not in told):  # fmt: skip
            self._skipped = tag  # the style sheet is a file of its own; swatches are legends
            return
        if tag in INLINE:
            self._say(" | " if tag in ("td", "th") else " ")
            if told.get("href"):
                self._say(f"[{told['href']}] ")
            return
        names = "".join(f" {name}={value}" for name, value in attrs if name not in LOOKS)
        self.lines.append("  " * self.deep + tag + names)
        if tag not in EMPTY:
            self.deep += 1

    def handle_startendtag(self, tag, attrs):
        if not self._skipped and tag not in EMPTY:
            self.handle_starttag(tag, attrs)
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        if self._skipped:
            self._skipped = "" if tag == self._skipped else self._skipped
        elif tag not in INLINE and tag not in EMPTY:
            self.deep -= 1

    def handle_data(self, data):
        if not self._skipped and data.strip():
            self._say(f" {' '.join(data.split())}")

    def _say(self, text):
        self.lines[-1] += text


def outline_of(html: str) -> str:
    """The text that is kept as a golden file."""
    found = Outline()
    found.lines.append("page")
    found.feed(html)
    assert found.deep == 0, "an element is not closed"
    return "\n".join(line.rstrip() for line in found.lines) + "\n"
