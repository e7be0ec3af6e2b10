"""Slurm in: files or a live cluster become facts, all of them in one transaction or none."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from collector.slurm import associations, node, node_event, partition, plain, settings, topology
from collector.slurm import sacct as sacct_output
from collector.slurm.facts import SlurmFacts, take_in
from collector.slurm.live_import import import_live
from collector.slurm.refusal import MalformedError, refusal
from collector.slurm.run_rules import Window
from collector.slurm.stamp import checked
from collector.slurm.summary import ImportSummary
from collector.store import Store

__all__ = ["ImportSummary", "import_files", "import_live", "zone_of"]


def import_files(  # noqa: PLR0913 - one argument per option of `unstrand import slurm`
    store: Store,
    cluster: str,
    *,
    sacct: Path | str,
    nodes: Path | str,
    now: datetime,
    events: Path | str | None = None,
    topology: Path | str | None = None,
    partitions: Path | str | None = None,
    config: Path | str | None = None,
    qos: Path | str | None = None,
    associations: Path | str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    time_zone: str = "UTC",
    sacct_fields: str | None = None,
) -> ImportSummary:
    """Take in files that Slurm's tools wrote, and say what was kept and left out.

    Facts are known over ``[since, until)``, by default first submit to last end. ``nodes`` holds
    for the whole window unless ``events`` says otherwise. ``config``, ``qos``, ``associations``:
    how the scheduler is set, taken to be so since it is first told; ``partitions`` go with them.
    ``time_zone``: of times without an
    offset. ``sacct_fields``: the ``--format`` of a sacct file without a header line. The same
    files again change nothing. Raises ImportRefusedError (source, line, what, remedy) with the
    store untouched.
    """
    if not cluster.strip():
        raise refusal("cluster", None, "its name is empty", "Give --cluster a name")
    zone = zone_of(time_zone)
    files = _Files(cluster, zone)
    facts = SlurmFacts(
        cluster=cluster,
        source="slurm files",
        runs=files.runs(sacct, sacct_fields),
        nodes=files.nodes(nodes),
        events=None if events is None else files.events(events),
        places={} if topology is None else files.places(topology),
        partitions=() if partitions is None else files.partitions(partitions),
        settings=files.settings(partitions, config, qos, associations),
        digest=files.digest(),
    )
    return take_in(store, facts, Window(_epoch(since), _epoch(until)), now)


def zone_of(name: str) -> tzinfo:
    """The zone of that name; UTC itself for ``UTC``. Raises ImportRefusedError."""
    if name.upper() in ("UTC", "Z"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        what = f"there is no time zone {name!r} on this machine"
        raise refusal("time zone", None, what, "Give a name such as Europe/Berlin or UTC") from None


class _Files:
    """Reads and parses one file after the other and keeps a digest of all of them."""

    def __init__(self, cluster: str, zone: tzinfo) -> None:
        self._cluster, self._zone = cluster, zone
        self._hash = hashlib.sha256()

    def digest(self) -> str:
        """A name for what was read: the same bytes, the same name."""
        return self._hash.hexdigest()[:32]

    def runs(self, path: Path | str, fields: str | None) -> sacct_output.RunBatch:
        data = self._bytes(path)
        name = str(path)
        return sacct_output.parse(name, data, cluster=self._cluster, zone=self._zone, fields=fields)

    def nodes(self, path: Path | str) -> tuple[node.SlurmNode, ...]:
        return tuple(node.parse(str(path), self._text(path, node.REMEDY), self._zone))

    def events(self, path: Path | str) -> tuple[node_event.NodeEvent, ...]:
        data = self._bytes(path)
        return tuple(node_event.parse(str(path), data, cluster=self._cluster, zone=self._zone))

    def places(self, path: Path | str) -> dict[str, topology.Place]:
        return topology.parse(str(path), self._text(path, topology.REMEDY))

    def partitions(self, path: Path | str) -> tuple[partition.SlurmPartition, ...]:
        return tuple(partition.parse(str(path), self._text(path, partition.REMEDY)))

    def settings(
        self,
        partitions: Path | str | None,
        config: Path | str | None,
        qos: Path | str | None,
        accounts: Path | str | None,
    ) -> dict[str, dict[str, str]]:
        """The settings in each file, by family (`settings.FAMILIES`)."""
        found: dict[str, dict[str, str]] = {}
        if config is not None:
            text = self._text(config, settings.CONFIG_REMEDY)
            found["config"] = settings.checked_config(str(config), text)
        if qos is not None:
            found["qos"] = settings.checked_qos(str(qos), self._text(qos, settings.QOS_REMEDY))
        if accounts is not None:
            text = self._text(accounts, associations.REMEDY)
            found["accounts"] = associations.checked(str(accounts), text, self._cluster)
        if partitions is not None and found:
            text = self._text(partitions, partition.REMEDY)
            found["partition"] = settings.settings({}, text, "")
        return found

    def _bytes(self, path: Path | str) -> bytes:
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            why = error.strerror or str(error)
            raise refusal(str(path), None, f"cannot be read: {why}", "Check the path") from error
        self._hash.update(len(data).to_bytes(8, "big") + data)
        return data

    def _text(self, path: Path | str, remedy: str) -> str:
        return plain.cleaned(str(path), self._bytes(path), remedy).decode()


def _epoch(moment: datetime | None) -> int | None:
    if moment is None:
        return None
    if moment.tzinfo is None:
        what = f"the time {moment.isoformat()} has no zone"
        raise refusal("window", None, what, "Give since and until with a zone")
    try:
        return checked(int(moment.timestamp()), moment.isoformat())
    except MalformedError as error:
        raise refusal("window", None, str(error), "Check --since and --until") from error
