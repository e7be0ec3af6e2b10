"""topology.conf and topology.yaml from the places of the nodes."""

from __future__ import annotations

from collections.abc import Sequence

import yaml

from collector.slurm import hostlist
from scheduler_advisor.handover.errors import HandoverError
from scheduler_advisor.handover.site import Node

TREE, FILE, YAML_FILE = "topology/tree", "topology.conf", "topology.yaml"


def switches(nodes: Sequence[Node]) -> list[tuple[str, str, str]]:
    """(name, "nodes" | "switches", members) from the leaves up to one root."""
    bare = [node.name for node in nodes if not node.leaf]
    if bare:
        raise HandoverError(
            f"topology: {len(bare)} nodes hang on no known switch ({hostlist.compress(bare)[:80]});"
            " import the network with `unstrand import slurm --topology FILE`"
        )
    leaves: dict[str, list[str]] = {}
    spines: dict[str, set[str]] = {}
    for node in nodes:
        leaves.setdefault(node.leaf, []).append(node.name)
        spines.setdefault(node.spine, set()).add(node.leaf)
    found = [(leaf, "nodes", hostlist.compress(names)) for leaf, names in sorted(leaves.items())]
    tops = sorted(spines.pop("", set()))
    found += [
        (spine, "switches", hostlist.compress(members)) for spine, members in sorted(spines.items())
    ]
    tops += sorted(spines)
    if len(tops) > 1:
        found.append(("core", "switches", hostlist.compress(tops)))
    return found


def conf_text(nodes: Sequence[Node]) -> str:
    """topology.conf, which every version reads."""
    keys = {"nodes": "Nodes", "switches": "Switches"}
    return "".join(
        f"SwitchName={name} {keys[kind]}={members}\n" for name, kind, members in switches(nodes)
    )


def yaml_text(nodes: Sequence[Node]) -> str:
    """topology.yaml, which 25.05 and newer read and prefer where it is there."""
    rows = [
        {"switch": name, ("nodes" if kind == "nodes" else "children"): members}
        for name, kind, members in switches(nodes)
    ]
    body = [{"topology": "default", "cluster_default": True, "tree": {"switches": rows}}]
    return str(yaml.safe_dump(body, sort_keys=False, explicit_start=True))
