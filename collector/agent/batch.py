"""What travels from an agent to the service: columns, and the four names that make it unique."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from typing import Any

from collector.agent.tables import APPENDED, REQUIRED, SNAPSHOTS
from collector.errors import BatchRefusedError

FORMAT = 1  # raised when an older service could misread what a newer agent means
MOST_BYTES = 32 * 2**20  # unpacked; a batch is some tens of kilobytes
MOST_ROWS = 200_000

Columns = dict[str, list[Any]]


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of one node. (node, agent_id, boot_id, sequence) is taken in once, whatever happens.

    ``ts_us``: when it was made, microseconds since 1970 by the agent's clock.
    """

    cluster: str
    node: str
    agent_id: str
    boot_id: str
    sequence: int
    ts_us: int
    tables: dict[str, Columns]
    agent_version: str = ""

    @property
    def row_count(self) -> int:
        """Rows in all tables."""
        return sum(_height(columns) for columns in self.tables.values())

    def pack(self) -> bytes:
        """The bytes for the wire and the spool."""
        plain = {
            "format": FORMAT, "cluster": self.cluster, "node": self.node,
            "agent_id": self.agent_id, "boot_id": self.boot_id, "sequence": self.sequence,
            "ts_us": self.ts_us, "agent_version": self.agent_version, "tables": self.tables,
        }  # fmt: skip
        return zlib.compress(json.dumps(plain, separators=(",", ":"), allow_nan=False).encode(), 1)


def unpack(raw: bytes) -> Batch:
    """The batch in ``raw``. Unknown tables and columns of a newer agent are left out.

    Raises BatchRefusedError for anything that is no batch of ours.
    """
    plain = _plain(raw)
    if plain.get("format") != FORMAT:
        raise BatchRefusedError(
            f"the agent speaks batch format {plain.get('format')!r}, this service {FORMAT}: "
            "bring agent and service to the same version"
        )
    try:
        batch = Batch(
            cluster=_text(plain, "cluster"),
            node=_text(plain, "node"),
            agent_id=_text(plain, "agent_id"),
            boot_id=_text(plain, "boot_id"),
            sequence=_count(plain, "sequence"),
            ts_us=_count(plain, "ts_us"),
            tables={
                name: _known(name, columns)
                for name, columns in plain["tables"].items()
                if name in REQUIRED
            },
            agent_version=str(plain.get("agent_version", ""))[:64],
        )
    except (KeyError, AttributeError, TypeError) as error:
        raise BatchRefusedError(f"the batch lacks {error}: it was not made by an agent") from error
    if batch.row_count > MOST_ROWS:
        raise BatchRefusedError(
            f"{batch.row_count} rows in one batch: at most {MOST_ROWS} are taken"
        )
    return batch


def _plain(raw: bytes) -> dict[str, Any]:
    try:
        unpacker = zlib.decompressobj()
        text = unpacker.decompress(raw, MOST_BYTES)
        if unpacker.unconsumed_tail or not unpacker.eof:
            raise BatchRefusedError(f"the batch is torn, or larger than {MOST_BYTES >> 20} MiB")
        plain = json.loads(text)
    except (zlib.error, ValueError) as error:
        raise BatchRefusedError(f"the batch cannot be read ({error}): send it again") from error
    if not isinstance(plain, dict):
        raise BatchRefusedError("the batch is no object: it was not made by an agent")
    return plain


def _known(table: str, columns: Any) -> Columns:
    wanted = APPENDED.get(table) or SNAPSHOTS[table]
    kept = {name: values for name, values in columns.items() if name in wanted}
    heights = {len(values) for values in kept.values()}
    if len(heights) > 1 or not all(isinstance(values, list) for values in kept.values()):
        raise BatchRefusedError(f"the columns of {table} differ in length: nothing was taken")
    if heights and heights != {0}:
        for name in REQUIRED[table]:
            if name not in kept or any(value is None for value in kept[name]):
                raise BatchRefusedError(f"{table}.{name} is missing: nothing was taken")
    return kept


def _text(plain: dict[str, Any], name: str) -> str:
    value = plain[name]
    if not isinstance(value, str) or not 0 < len(value) <= 255:
        raise BatchRefusedError(f"{name} must be a text of 1 to 255 characters, not {value!r:.80}")
    return value


def _count(plain: dict[str, Any], name: str) -> int:
    value = plain[name]
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**62:
        raise BatchRefusedError(f"{name} must be a whole number, not {value!r:.80}")
    return value


def _height(columns: Columns) -> int:
    return max((len(values) for values in columns.values()), default=0)
