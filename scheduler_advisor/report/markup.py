"""HTML and SVG as strings: a tag is a function call; text is escaped unless it is `Markup`."""

from __future__ import annotations

from html import escape

VOID = {"meta", "br", "rect", "line", "circle", "path", "col"}


class Markup(str):
    """A string that is HTML already."""

    __slots__ = ()


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """One element; ``cls`` is class, ``_`` in names is ``-``, an attribute of None is left out."""
    given = "".join(
        f' {"class" if key == "cls" else key.replace("_", "-")}="{escape(str(value), quote=True)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in VOID and not children:
        return Markup(f"<{name}{given}>" if name in {"meta", "br", "col"} else f"<{name}{given}/>")
    return Markup(f"<{name}{given}>{join(*children)}</{name}>")


def join(*children: object) -> Markup:
    """Children one after the other; None is nothing, text is escaped."""
    return Markup("".join(_one(child) for child in children))


def _one(child: object) -> str:
    if child is None:
        return ""
    if isinstance(child, (list, tuple)):
        return join(*child)
    return child if isinstance(child, Markup) else escape(str(child), quote=False)
