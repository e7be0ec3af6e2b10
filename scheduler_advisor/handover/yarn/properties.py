"""A Hadoop configuration file: properties changed in place, everything else as it was."""

from __future__ import annotations

import re
from xml.etree import ElementTree
from xml.sax.saxutils import escape, unescape

from scheduler_advisor.handover.errors import HandoverError

EMPTY = '<?xml version="1.0"?>\n<configuration>\n</configuration>\n'
_PROPERTY = re.compile(r"[ \t]*<property>.*?</property>[ \t]*\n?", re.S)
_COMMENT = re.compile(r"<!--.*?-->", re.S)
_NAME = re.compile(r"<name>\s*(.*?)\s*</name>", re.S)
_VALUE = re.compile(r"<value>(.*?)</value>|<value\s*/>", re.S)


class Properties:
    """The text of a file of properties."""

    def __init__(self, text: str, file: str) -> None:
        """Refused where it is not such a file."""
        try:
            root = ElementTree.fromstring(text)
        except ElementTree.ParseError as error:
            raise HandoverError(f"{file}: not XML: {error}") from error
        if root.tag != "configuration":
            raise HandoverError(f"{file}: the root is <{root.tag}>, not <configuration>")
        self.text = text

    def get(self, name: str) -> str | None:
        """A property's value."""
        for block in self._blocks():
            if _name(block[0]) == name and (found := _VALUE.search(block[0])):
                return unescape((found[1] or "").strip())
        return None

    def names(self) -> list[str]:
        """Every property, in the order of the file."""
        return [_name(block[0]) for block in self._blocks()]

    def set(self, name: str, value: str | None) -> None:
        """A property's value; None takes it out."""
        for block in self._blocks():
            if _name(block[0]) != name:
                continue
            if value is None:
                new = ""
            else:
                new = _VALUE.sub(lambda _: f"<value>{escape(value)}</value>", block[0], count=1)
            self.text = self.text[: block.start()] + new + self.text[block.end() :]
            return
        if value is not None:
            self._add(name, value)

    def _add(self, name: str, value: str) -> None:
        at = self.text.rindex("</configuration>")
        line = f"<name>{escape(name)}</name>\n    <value>{escape(value)}</value>"
        block = f"  <property>\n    {line}\n  </property>\n"
        self.text = self.text[:at] + block + self.text[at:]

    def _blocks(self) -> list[re.Match[str]]:
        hidden = [(found.start(), found.end()) for found in _COMMENT.finditer(self.text)]
        return [
            block
            for block in _PROPERTY.finditer(self.text)
            if not any(since <= block.start() < until for since, until in hidden)
        ]


def _name(block: str) -> str:
    found = _NAME.search(block)
    return unescape(found[1]) if found else ""
