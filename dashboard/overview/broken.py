"""What is broken now, as a list with how long."""

from __future__ import annotations

from html import escape

from analytics.health.broken import Broken
from analytics.window import Window
from dashboard import data
from dashboard.formats import length, moment, number
from dashboard.frame import Page
from dashboard.parts.html import heading, show
from dashboard.words import Words

SHOWN = 8


def broken_list(page: Page) -> None:
    """As of the last moment that is known, whatever the window."""
    at = page.span.until
    words = page.words
    items = [_item(found, page) for found in data.broken(page.path, at, page.view.cluster)]
    items += _unpriced(page)
    as_of = words("overview.broken_at", at=f"{moment(at, page.view.zone)} {page.view.zone}")
    body = "".join(items[:SHOWN])
    listing = f'<ul class="broken">{body}</ul>' if items else ""
    if len(items) > SHOWN:
        more = words("overview.broken_more", count=len(items) - SHOWN)
        listing += f'<p class="hint">{escape(more)}</p>'
    fine = "" if items else f'<p class="fine">{escape(words("overview.broken_none"))}</p>'
    show(heading(words("overview.broken"), as_of) + listing + fine)


def _item(found: Broken, page: Page) -> str:
    title, detail = _texts(found, page.words)
    since = page.words(
        "broken.since", span=length(page.span.until - found.since, page.words.span_units)
    )
    return _line(title, detail, since, warn=found.kind == "gang")


def _texts(found: Broken, words: Words) -> tuple[str, str]:
    match found.kind:
        case "node_down":
            reason = found.reason or words("broken.node_reason_none")
            state = words(f"state.{found.state}")
            return (
                words("broken.node_down", node=found.node, state=state),
                words("broken.node_down_detail", gpus=found.gpus, reason=reason),
            )
        case "gpu_fatal":
            gpu = found.gpu_uuid or ""
            return (
                words("broken.gpu_fatal", node=found.node),
                words("broken.gpu_fatal_detail", code=found.code or "–", gpu=gpu),
            )
        case "silent":
            return (
                words("broken.silent", node=found.node),
                words("broken.silent_detail", gpus=found.gpus),
            )
        case _:
            team, user = found.account or "–", found.user_name or "–"
            return (
                words("broken.gang", job=found.job_id, gpus=found.gpus),
                words("broken.gang_detail", team=team, user=user),
            )


def _unpriced(page: Page) -> list[str]:
    window = Window(page.view.since, page.view.until, page.view.zone)
    return [
        _line(
            page.words("broken.unpriced", model=found.gpu_model),
            page.words("broken.unpriced_detail", hours=number(float(found.gpu_hours))),
            "",
            warn=True,
        )
        for found in data.unpriced(page.path, window, page.view.cluster)
    ]


def _line(title: str, detail: str, span: str, *, warn: bool) -> str:
    return (
        f"<li{' class=warn' if warn else ''}><b>{escape(title)}</b>"
        f'<span class="span">{escape(span)}</span><span class="hint">{escape(detail)}</span></li>'
    )
