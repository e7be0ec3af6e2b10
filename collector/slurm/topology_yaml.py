"""``topology.yaml``: a list of topologies, of which the cluster's default one is taken."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from collector.slurm.refusal import MalformedError


def switches_of(text: str) -> Iterator[tuple[str, str, str, bool]]:
    """(name, hostlist of nodes, hostlist of child switches, is a block) of the default topology.

    A flat topology has none. Raises MalformedError.
    """
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise MalformedError(f"this is no YAML: {' '.join(str(error).split())}") from error
    chosen = _default(document)
    for switch in _list(chosen, "tree", "switches"):
        yield _text(switch, "switch"), _opt(switch, "nodes"), _opt(switch, "children"), False
    for block in _list(chosen, "block", "blocks"):
        yield _text(block, "block"), _opt(block, "nodes"), "", True


def _default(document: object) -> dict[str, Any]:
    if not isinstance(document, list) or not all(isinstance(each, dict) for each in document):
        raise MalformedError("topology.yaml is a list of topologies, this is something else")
    if not document:
        raise MalformedError("topology.yaml holds no topology")
    marked = [each for each in document if each.get("cluster_default") is True]
    chosen: dict[str, Any] = (marked or document)[0]
    return chosen


def _list(topology: dict[str, Any], kind: str, name: str) -> list[dict[str, Any]]:
    section = topology.get(kind)
    if section is None:
        return []
    entries = section.get(name, []) if isinstance(section, dict) else None
    if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        raise MalformedError(f"{kind}: {name} is not a list")
    return entries


def _text(entry: dict[str, Any], name: str) -> str:
    value = entry.get(name)
    if value is None:
        raise MalformedError(f"an entry has no {name}: {str(entry)[:60]}")
    return str(value)


def _opt(entry: dict[str, Any], name: str) -> str:
    value = entry.get(name)
    return "" if value is None else str(value)
