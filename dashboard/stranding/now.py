"""Whether a job of some shape could start at the end of the window, node by node."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from html import escape

import streamlit as st

from analytics.reports.stranding_at import NodeAnswer, StartAnswer
from analytics.reports.stranding_at import Shape as AskedShape
from dashboard import data
from dashboard.formats import moment, number
from dashboard.frame import Page
from dashboard.instant import asked_moment, pick_moment
from dashboard.parts.downloads import downloads
from dashboard.parts.html import Column, heading, show, strong, table, tag
from dashboard.view import Shape

DEFAULT = Shape(8, 1)
PER_NODE = (1, 2, 4, 8, 16)
NODES = (1, 2, 4, 8, 16)
SHOWN = 24
FAR_SHOWN = 12


def start_now(page: Page) -> None:
    """The verdict, the smallest release that would let the job start, and every node's part."""
    words, at = page.words, asked_moment(page)
    as_of = words("overview.broken_at", at=f"{moment(at, page.view.zone)} {page.view.zone}")
    show(heading(words("stranding.now"), as_of, after=tag("observed", words)))
    if page.view.cluster is None and len(page.span.clusters) > 1:
        show(f'<p class="hint">{words("stranding.one_cluster")}</p>')
        return
    shape = page.view.shape or DEFAULT
    _pick(page, shape)
    asked = AskedShape(gpus=shape.gpus, nodes=shape.nodes)
    answer = data.start(page.path, at, asked, page.view.cluster)
    show(f'<p class="answer">{strong(verdict_text(page, answer))}</p>')
    _nodes(page, answer)


def _pick(page: Page, shape: Shape) -> None:
    left, right, back = st.columns([2, 2, 5], gap="medium")
    with left:
        gpus = _choice("shape_gpus", page.words("stranding.per_node"), PER_NODE, shape.gpus)
    with right:
        nodes = _choice("shape_nodes", page.words("stranding.nodes"), NODES, shape.nodes)
    with back:
        pick_moment(page)
    wanted = Shape(gpus, nodes)
    if wanted != shape:
        st.query_params["shape"] = str(wanted)
        st.rerun()


def _choice(key: str, label: str, options: tuple[int, ...], chosen: int) -> int:
    offered = sorted({*options, chosen})
    if key not in st.session_state:
        st.session_state[key] = chosen
    picked: int = st.selectbox(label, offered, key=key)
    return picked


def verdict_text(page: Page, answer: StartAnswer) -> str:
    """ "An 8-GPU job cannot start, because ..." and what would change it."""
    words, shape = page.words, answer.shape
    if shape.nodes > 1:
        job = words("stranding.job_many", gpus=shape.gpus, nodes=shape.nodes)
    elif shape.gpus > 1:
        job = words("stranding.job_one", gpus=shape.gpus)
    else:
        job = words("stranding.job_single")
    free = sum(node.free_gpus for node in answer.nodes)
    if answer.verdict == "fits":
        return words("stranding.fits", job=job, free=free)
    text = words("stranding.cannot", job=job, why=words(f"why.{answer.verdict}", free=free))
    if answer.release:
        jobs = job_names(page, answer.release)
        text += " " + words("stranding.release", jobs=jobs, gpus=answer.release_gpus)
    elif answer.verdict != "impossible":
        text += " " + words("stranding.no_release")
    return text


def job_names(page: Page, run_ids: Iterable[str]) -> str:
    """The jobs of runs with their users, once each, in the order given."""
    runs = tuple(run_ids)
    owners = data.owners(page.path, runs, page.view.cluster)
    names = []
    for run in runs:
        owner = owners.get(run)
        names.append(run if owner is None else f"{owner.job_id} ({owner.user_name or '–'})")
    return ", ".join(dict.fromkeys(names))


def _nodes(page: Page, answer: StartAnswer) -> None:
    """Nodes that need least come first: those that can, those that a release would open."""
    words = page.words
    near = [node for node in answer.nodes if node.reason is None or node.release]
    near.sort(key=lambda n: (n.reason is not None, len(n.release), -n.free_gpus, n.node))
    far = [node for node in answer.nodes if node.reason is not None and not node.release]
    columns = [
        Column(words("health.node")),
        Column(words("teams.gpu_model"), text=True, narrow=False),
        Column(words("stranding.free")),
        Column(words("stranding.why"), text=True),
        Column(words("stranding.end"), text=True),
    ]
    rows = [
        [
            node.node,
            node.gpu_model,
            str(node.free_gpus),
            why_text(page, node),
            job_names(page, node.release) if node.release else "–",
        ]
        for node in near
    ]
    body = table(columns, rows[:SHOWN]) if rows else ""
    if len(rows) > SHOWN:
        more = words("overview.broken_more", count=len(rows) - SHOWN)
        body += f'<p class="hint">{more}</p>'
    if far:
        named = ", ".join(f"{node.node} ({why_text(page, node)})" for node in far[:FAR_SHOWN])
        more = "" if len(far) <= FAR_SHOWN else f", +{len(far) - FAR_SHOWN}"
        never = words("stranding.never", count=len(far), nodes=named + more)
        body += f'<p class="hint">{escape(never)}</p>'
    show(body)
    plain = [{**asdict(node), "release": " ".join(node.release)} for node in answer.nodes]
    downloads("start", plain, words)


def why_text(page: Page, node: NodeAnswer) -> str:
    """What is missing on one node, in the order in which it would be seen."""
    words = page.words
    if node.reason is None:
        return words("stranding.can")
    if node.reason not in {"gpus", "cpu", "mem"}:
        return words(f"class.{node.reason}")
    parts = []
    if node.missing_gpus:
        parts.append(words("stranding.missing_gpus", count=node.missing_gpus))
    if node.missing_cpus:
        parts.append(words("stranding.missing_cpus", count=number(node.missing_cpus)))
    if node.missing_mem_mib:
        parts.append(words("stranding.missing_mem", count=number(node.missing_mem_mib / 1024)))
    return ", ".join(parts)
