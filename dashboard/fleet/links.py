"""NVLink: which GPUs reach each other, and the islands that move the most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from html import escape

from analytics.questions.nvlink_islands import Island
from dashboard.formats import ABSENT, number
from dashboard.frame import Page
from dashboard.parts.downloads import downloads
from dashboard.parts.html import Column, heading, show, table, tag
from dashboard.words import Words

SHOWN = 12
_GIGA = 1e9


def nvlink_islands(page: Page, islands: Sequence[Island]) -> None:
    """The kinds of islands in a line, then the busiest; what to do where no links are known."""
    words = page.words
    show(heading(words("fleet.nvlink"), words("fleet.nvlink_hint"), after=tag("observed", words)))
    if not islands:
        show(f'<p class="fine">{escape(words("fleet.nvlink_none"))}</p>')
        return
    show(f"<p>{escape(_kinds(islands, words))}</p>")
    order = sorted(islands, key=lambda one: (-(traffic(one) or 0.0), one.node, one.gpus))
    columns = [
        Column(words("health.node")),
        Column(words("fleet.gpus"), text=True),
        Column(words("fleet.link_kind"), text=True),
        Column(words("fleet.domain"), text=True, narrow=False),
        Column(words("fleet.sent")),
        Column(words("fleet.received")),
    ]
    rows = [
        [
            one.node,
            gpu_text(one.gpus),
            kind_text(one, words),
            one.fabric or ABSENT,
            rate(one.tx_bytes_per_s),
            rate(one.rx_bytes_per_s),
        ]
        for one in order[:SHOWN]
    ]
    show(table(columns, rows))
    downloads("nvlink", [_plain(one) for one in islands], words)


def traffic(island: Island) -> float | None:
    """Both directions together; None = not measured."""
    if island.tx_bytes_per_s is None or island.rx_bytes_per_s is None:
        return None
    return island.tx_bytes_per_s + island.rx_bytes_per_s


def rate(bytes_per_s: float | None) -> str:
    """``12.3 GB/s``."""
    return ABSENT if bytes_per_s is None else f"{number(bytes_per_s / _GIGA)} GB/s"


def gpu_text(gpus: Sequence[int]) -> str:
    """``0–3, 6``."""
    parts: list[list[int]] = []
    for index in sorted(gpus):
        if parts and index == parts[-1][-1] + 1:
            parts[-1].append(index)
        else:
            parts.append([index])
    return ", ".join(str(p[0]) if len(p) == 1 else f"{p[0]}–{p[-1]}" for p in parts)


def kind_text(island: Island, words: Words) -> str:
    """Over switches, or how many links join two of them."""
    if island.kind != "direct" or island.links is None:
        return words(f"link.{island.kind}")
    least, most = island.links
    count = str(least) if least == most else f"{least}–{most}"
    return words("link.direct", count=count)


def _kinds(islands: Sequence[Island], words: Words) -> str:
    kinds = Counter((len(one.gpus), one.kind) for one in islands)
    return "; ".join(
        words("fleet.islands_of", count=count, gpus=gpus, kind=words(f"joined.{kind}"))
        for (gpus, kind), count in sorted(kinds.items(), reverse=True)
    )


def _plain(island: Island) -> dict[str, object]:
    row = asdict(island)
    links = row.pop("links")
    row["gpus"], row["gpu_uuids"] = gpu_text(island.gpus), " ".join(island.gpu_uuids)
    return row | {
        "least_links": None if links is None else links[0],
        "most_links": None if links is None else links[1],
    }
