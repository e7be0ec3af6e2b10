"""A small cluster in Slurm's own words, written to files with defaults for everything."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from collector.slurm import sacct
from collector.slurm.importer import import_files

NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)
T0 = 1_793_491_200
"""2026-11-01 00:00:00 UTC."""


def _run(**changes):
    """One sacct row by field name: job 1, 2 of 8 GPUs of gn01 for one hour."""
    row = {
        "cluster": "c", "jobid": "1", "jobidraw": None, "account": "nlp", "user": "amara",
        "uid": 5001, "qos": "normal", "partition": "a100", "submit": T0, "eligible": T0,
        "start": T0 + 60, "end": T0 + 3660, "elapsedraw": 3600, "suspended": "00:00:00",
        "state": "COMPLETED", "reqtres": "cpu=16,gres/gpu=2,mem=65536M,node=1",
        "alloctres": "billing=16,cpu=16,gres/gpu:a100=2,gres/gpu=2,mem=65536M,node=1", "nnodes": 1,
        "nodelist": "gn01", "restarts": 0, "planned": "00:01:00", "timelimitraw": 120,
        "exitcode": "0:0", "reason": "None", "wckey": "", "jobname": "train",
    } | changes  # fmt: skip
    if row["jobidraw"] is None:
        row["jobidraw"] = str(row["jobid"]).split("_")[0].split("+")[0]
    return row


def _node(**changes):
    """One `scontrol show node -d -o` line: 8 A100, 128 CPUs, 1 TiB, idle."""
    values = {
        "NodeName": "gn01", "Arch": "x86_64", "CPUAlloc": 0, "CPUEfctv": 128, "CPUTot": 128,
        "Gres": "gpu:a100:8(S:0-1)", "GresUsed": "gpu:a100:0(IDX:N/A)", "RealMemory": 1048576,
        "State": "IDLE", "Partitions": "a100",
        "CfgTRES": "cpu=128,mem=1048576M,billing=128,gres/gpu=8,gres/gpu:a100=8",
    } | changes  # fmt: skip
    return " ".join(f"{key}={value}" for key, value in values.items() if value is not None)


@dataclass
class Site:
    """Files of one cluster, and the import of them into a store."""

    folder: Path
    store: object
    rows: list[dict] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)
    fields: tuple[str, ...] = tuple(sacct.FIELDS.split(","))
    header: bool = True
    delimiter: str = "|"
    extra: dict = field(default_factory=dict)

    run = staticmethod(_run)
    node = staticmethod(_node)
    t0 = T0
    now = NOW

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def sacct_text(self) -> str:
        lines = [self.delimiter.join(str(row[name]) for name in self.fields) for row in self.rows]
        head = [self.delimiter.join(self.fields)] if self.header else []
        return "".join(f"{line}\n" for line in head + lines)

    def take_in(self, *, sacct=None, nodes=None, cluster="c", **options):
        """Import the rows and nodes of this site, or the text given instead of them."""
        for option in ("events", "topology", "partitions", "config", "qos", "associations"):
            if option in options:
                options[option] = self.write(f"{option}.txt", options[option])
        return import_files(
            self.store,
            cluster,
            sacct=self.write("sacct.txt", self.sacct_text() if sacct is None else sacct),
            nodes=self.write(
                "nodes.txt",
                "\n".join(self.nodes or [self.node()]) + "\n" if nodes is None else nodes,
            ),
            now=options.pop("now", NOW),
            **options,
        )

    def facts(self) -> dict[str, list[dict]]:
        """Every row that an import writes, by table."""
        tables = ("node", "job", "job_run", "allocation", "node_state", "fact_window", "import_log")
        return {table: self.store.rows(f"FROM {table} ORDER BY ALL") for table in tables}

    def gpu_seconds(self) -> int:
        """GPU-seconds of the stored allocations, open ones up to where their run is known."""
        return self.store.value(
            "SELECT CAST(coalesce(sum(a.gpus * date_diff('second', a.start_at, "
            "coalesce(a.end_at, r.last_known_at))), 0) AS BIGINT) "
            "FROM allocation a JOIN job_run r USING (cluster, run_id)"
        )


@pytest.fixture
def site(tmp_path, store):
    """An empty site over an empty store."""
    return Site(tmp_path, store)
