"""What a service spends on the batches of a fleet.

`python benchmarks/ingest_load.py [NODES] [RATE]`

Starts a service over an empty store, makes the batches of NODES nodes of eight GPUs (a holder per
GPU), sends RATE of them a second for half a minute, and prints the CPU time of the service.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path

import httpx

from collector.agent.batch import Batch
from collector.agent.tables import APPENDED
from collector.telemetry.rows import micros
from unstrand.clock import utc_now

GPUS, STEP_S, SECONDS = 8, 15.0, 30
TEXT = {"gpu_uuid", "mig_uuid", "run_id", "status"}


def batch(node: int, tick: int, at: datetime) -> bytes:
    """A tick of a node as an agent packs it; holders once a minute, as agents tell them."""
    uuids = [f"GPU-{node:08d}-0000-0000-0000-{gpu:012d}" for gpu in range(GPUS)]
    ts = micros(at)
    sample: dict[str, list[object]] = {
        name: [None if name in TEXT else 0.5 * (gpu + tick) for gpu in range(GPUS)]
        for name in APPENDED["sample"]
    }
    sample |= {
        "gpu_uuid": uuids, "gpu_index": list(range(GPUS)), "ts": [ts] * GPUS,
        "step_s": [STEP_S] * GPUS, "clocks_event_reasons": [4] * GPUS, "processes": [1] * GPUS,
        "ecc_uncorrected": [0] * GPUS, "run_id": [f"user:u{node % 50}"] * GPUS,
    }  # fmt: skip
    tables: dict[str, dict[str, list[object]]] = {
        "sample": sample,
        "process_sample": {
            "gpu_uuid": list(uuids), "ts": [ts] * GPUS, "pid": list(range(1000, 1000 + GPUS)),
            "mem_used_mib": [4096.0] * GPUS, "sm_util_ratio": [0.4] * GPUS,
        },
        "host_sample": {"ts": [ts], "step_s": [STEP_S], "cpu_used": [12.5], "cpus": [64]},
    }  # fmt: skip
    if tick % 4 == 0:
        tables["holding"] = {
            "key": [f"user:u{node % 50}"] * GPUS, "gpu_uuid": list(uuids), "share_num": [1] * GPUS,
            "share_den": [1] * GPUS, "ts": [ts] * GPUS,
        }  # fmt: skip
    name = f"n{node:05d}"
    return Batch("c", name, f"agent-{name}", "boot", tick, ts, tables).pack()


def cpu_s(pid: int) -> float:
    """CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def taken(client: httpx.AsyncClient, raw: bytes) -> bool:
    """Whether the service acknowledged the batch; False to come again."""
    try:
        answer = await client.post("/api/v1/ingest", content=raw)
    except httpx.TransportError:
        return False
    if answer.status_code != httpx.codes.SERVICE_UNAVAILABLE:
        answer.raise_for_status()
    return answer.is_success


async def send(url: str, batches: list[bytes], rate: float) -> list[float]:
    """Send at an even rate; returns the seconds until each was acknowledged."""
    waits: list[float] = []
    limits = httpx.Limits(max_connections=200)
    async with httpx.AsyncClient(base_url=url, timeout=30.0, limits=limits) as client:

        async def one(raw: bytes) -> None:
            begun = time.perf_counter()
            while not await taken(client, raw):  # as an agent does
                await asyncio.sleep(1.0)
            waits.append(time.perf_counter() - begun)

        started, tasks = time.perf_counter(), []
        for number, raw in enumerate(batches):
            await asyncio.sleep(max(0.0, started + number / rate - time.perf_counter()))
            tasks.append(asyncio.create_task(one(raw)))
        await asyncio.gather(*tasks)
    return waits


def main(nodes: int, rate: float) -> None:
    """Run it."""
    count = round(rate * SECONDS)
    start = utc_now() - timedelta(seconds=STEP_S * (count // nodes + 1))
    batches = [
        batch(
            number % nodes, number // nodes, start + timedelta(seconds=STEP_S * (number // nodes))
        )
        for number in range(count)
    ]
    with tempfile.TemporaryDirectory() as folder, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        command = [sys.executable, "-m", "unstrand", "up", "--db", f"{folder}/s.duckdb"]
        service = subprocess.Popen([*command, "--port", str(port)], stdout=subprocess.DEVNULL)
        try:
            url = f"http://127.0.0.1:{port}"
            while True:
                try:
                    httpx.get(f"{url}/healthz").raise_for_status()
                    break
                except httpx.HTTPError:
                    time.sleep(0.2)
            before = cpu_s(service.pid)
            waits = sorted(asyncio.run(send(url, batches, rate)))
            spent = cpu_s(service.pid) - before
        finally:
            service.terminate()
            service.wait()
    print(
        f"{nodes * GPUS} GPUs, {count} batches at {rate:g}/s: {spent:.1f} CPU-s, "
        f"{spent / count * 1e3:.2f} ms a batch, {spent / SECONDS:.2f} cores; acknowledged after "
        f"{waits[len(waits) // 2] * 1e3:.0f} ms (median), {waits[-1] * 1e3:.0f} ms (longest)"
    )


if __name__ == "__main__":
    asked = [float(argument) for argument in sys.argv[1:]]
    main(int(asked[0]) if asked else 1250, asked[1] if len(asked) > 1 else 83.0)
