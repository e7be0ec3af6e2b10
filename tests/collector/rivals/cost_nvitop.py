"""CPU of one collection by nvitop-exporter, in seconds; run in an environment of its own."""

import sys
import time

from nvitop import Device
from nvitop_exporter.exporter import PrometheusExporter
from prometheus_client import CollectorRegistry, generate_latest

ticks = int(sys.argv[1])
registry = CollectorRegistry()
exporter = PrometheusExporter(Device.all(), registry=registry, interval=1.0)


def tick():
    exporter.update_host()
    for device in exporter.devices:
        exporter.update_device(device)
    return generate_latest(registry)


for _ in range(3):
    text = tick()
started = time.process_time()
for _ in range(ticks):
    text = tick()
print((time.process_time() - started) / ticks, sum(line[:1] != b"#" for line in text.splitlines()))
