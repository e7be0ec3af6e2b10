"""CPU of one collection by us, in seconds: read, pipe, map, rows, host, batch, and a scrape.

With ``exporter`` as second argument only what an exporter does: no pipe, rows and batch.
What is read at a tick follows the agent's own schedule, a tick standing for fifteen seconds.
"""

import gc
import sys
import time
from datetime import UTC, datetime
from io import BytesIO

from collector.agent import wire
from collector.agent.batch import Batch
from collector.agent.carry import Carry
from collector.agent.picture import Picture
from collector.agent.reader import ReaderState
from collector.agent.schedule import Intervals, Schedule
from collector.exporter.node import NodeExporter
from collector.host.sampler import HostSampler
from collector.mapping.node import NodeMapper
from collector.nvml import Nvml
from collector.telemetry.nvml_source import NvmlSource
from collector.telemetry.rows import micros, sample_rows
from collector.telemetry.tick import decode

ticks, whole = int(sys.argv[1]), sys.argv[2:] != ["exporter"]
source = NvmlSource(Nvml.open(), clock=lambda: datetime.now(UTC), monotonic=time.monotonic)
schedule, turn = Schedule(Intervals()), iter(range(10**9))
carry = Carry(Intervals())
mapper, host = NodeMapper(), HostSampler()
newest, seen = [], []
exporter = NodeExporter(lambda: newest[0], "n1")


def tick():
    read = source.read(schedule.due(15.0 * next(turn)))
    # As the reader process does: an inventory that is the same is not sent again.
    if seen and read.inventory == seen[0]:
        read.inventory = []
    else:
        seen[:] = [read.inventory]
    if whole:
        read = decode(wire.read(BytesIO(wire.frame(read.encode()))))
    read.inventory = seen[0]
    attribution = mapper.attribute(read)
    host_rows = host.read(read.ts, read.mono_s, attribution, 15.0)
    if whole:
        tables = sample_rows(read, attribution, 15.0) | {"host_sample": host_rows}
        Batch("c", "n1", "a", "b", 1, micros(read.ts), tables).pack()
    costs = {n: (c.calls, c.total_s, c.worst_s) for n, c in source.nvml.costs.items()}
    now = time.monotonic()
    read.mono_s = now
    newest[:] = [Picture(ReaderState.READING, "", carry.over(read), attribution, now, costs=costs)]
    return exporter.exposition(None)[0]


gc.freeze()  # as the agent and its reader do after their start
for _ in range(3):
    text = tick()
started = time.process_time()
for _ in range(ticks):
    text = tick()
print((time.process_time() - started) / ticks, sum(line[:1] != b"#" for line in text.splitlines()))
