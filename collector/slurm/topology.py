"""Where nodes hang: ``topology.conf``, ``scontrol show topology`` or ``topology.yaml``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from collector.slurm import hostlist, key_values
from collector.slurm.refusal import MalformedError, refusal
from collector.slurm.topology_yaml import switches_of

REMEDY = "Give topology.conf, topology.yaml, or the output of `scontrol show topology`"


@dataclass(frozen=True, slots=True)
class Place:
    """A node's leaf switch and the one above it, or its block (kept as ``rack``)."""

    leaf: str | None = None
    spine: str | None = None
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class Switch:
    """One switch or block as written; ``line`` from 1, None where the format has no lines."""

    name: str
    nodes: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    block: bool = False
    line: int | None = None


def parse(source: str, text: str) -> dict[str, Place]:
    """Each node's place. Raises ImportRefusedError, also for a node under two leaf switches."""
    yaml = source.endswith((".yaml", ".yml")) or text.lstrip().startswith(("---", "- topology:"))
    switches = list(_from_yaml(source, text) if yaml else _from_lines(source, text))
    if not switches:
        raise refusal(source, None, "no switch and no block in it", REMEDY)
    parents = {child: switch for switch in switches for child in switch.children}
    return _places(source, switches, parents)


def _places(
    source: str, switches: Iterable[Switch], parents: Mapping[str, Switch]
) -> dict[str, Place]:
    places: dict[str, Place] = {}
    for switch in switches:
        # `scontrol show topology` lists the nodes of every level; the leaf is the one without
        # switches below it.
        if switch.children:
            continue
        above = parents.get(switch.name)
        for node in switch.nodes:
            before = places.get(node, Place())
            if switch.block:
                places[node] = Place(before.leaf, before.spine, switch.name)
                continue
            if before.leaf not in (None, switch.name):
                what = f"node {node} hangs on {before.leaf} and on {switch.name}"
                raise refusal(source, switch.line, what, REMEDY)
            places[node] = Place(switch.name, above.name if above else None, before.rack)
    return places


def _from_lines(source: str, text: str) -> Iterable[Switch]:
    for line, raw in enumerate(text.splitlines(), start=1):
        content = raw.split("#", 1)[0].strip()
        if not content or content.startswith(("BlockSizes=", "BlockSize=")):
            continue
        values = {key.lower(): value for key, value in key_values.fields(content).items()}
        name = values.get("switchname") or values.get("blockname")
        if name is None:
            what = f"expected SwitchName= or BlockName=, found {content[:60]!r}"
            raise refusal(source, line, what, REMEDY)
        try:
            yield Switch(
                name=name,
                nodes=tuple(hostlist.expand(values.get("nodes", ""))),
                children=tuple(hostlist.expand(values.get("switches", ""))),
                block="blockname" in values,
                line=line,
            )
        except MalformedError as error:
            raise refusal(source, line, str(error), REMEDY) from error


def _from_yaml(source: str, text: str) -> Iterable[Switch]:
    try:
        for name, nodes, children, block in switches_of(text):
            yield Switch(
                name, tuple(hostlist.expand(nodes)), tuple(hostlist.expand(children)), block
            )
    except MalformedError as error:
        raise refusal(source, None, str(error), REMEDY) from error
