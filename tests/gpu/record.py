"""Record what a real driver returns, and compare us with nvidia-smi under a known load.

``python record.py FOLDER [--seconds N] [--library FILE]`` writes record.json into the folder;
under three minutes with the default of 30 seconds of load. Needs nothing but this project's
environment; nvidia-smi and libcuda are used where they are. Exit status 1: a comparison failed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pynvml

from collector.nvml import Nvml
from collector.telemetry.nvml_source import NvmlSource
from collector.telemetry.source import Group

HERE = Path(__file__).parent
ALL = frozenset(Group)
QUERY = "uuid,utilization.gpu,memory.used,memory.reserved,power.draw,temperature.gpu,clocks.sm"
BURN_MIB = 1024
# (function, arguments after the handle): every call that the source makes per device.
CALLS = (
    ("nvmlDeviceGetUUID",), ("nvmlDeviceGetName",), ("nvmlDeviceGetMinorNumber",),
    ("nvmlDeviceGetPciInfo",), ("nvmlDeviceGetArchitecture",), ("nvmlDeviceGetComputeMode",),
    ("nvmlDeviceGetNumaNodeId",), ("nvmlDeviceGetMigMode",), ("nvmlDeviceGetMaxMigDeviceCount",),
    ("nvmlDeviceGetUtilizationRates",), ("nvmlDeviceGetMemoryInfo",),
    ("nvmlDeviceGetMemoryInfo", pynvml.nvmlMemory_v2), ("nvmlDeviceGetPowerUsage",),
    ("nvmlDeviceGetPowerManagementLimit",), ("nvmlDeviceGetTotalEnergyConsumption",),
    ("nvmlDeviceGetTemperature", 0), ("nvmlDeviceGetClockInfo", 1), ("nvmlDeviceGetClockInfo", 2),
    ("nvmlDeviceGetCurrentClocksEventReasons",), ("nvmlDeviceGetEncoderUtilization",),
    ("nvmlDeviceGetDecoderUtilization",), ("nvmlDeviceGetSamples", 1, 0),
    ("nvmlDeviceGetComputeRunningProcesses",), ("nvmlDeviceGetGraphicsRunningProcesses",),
    ("nvmlDeviceGetMPSComputeRunningProcesses",), ("nvmlDeviceGetProcessUtilization", 0),
    ("nvmlDeviceGetAccountingMode",), ("nvmlDeviceGetPcieReplayCounter",),
    ("nvmlDeviceGetTotalEccErrors", 0, 0), ("nvmlDeviceGetTotalEccErrors", 1, 1),
    ("nvmlDeviceGetRemappedRows",), ("nvmlGpmQueryDeviceSupport",),
    ("nvmlDeviceGetNvLinkState", 0), ("nvmlDeviceGetNvLinkVersion", 0),
    ("nvmlDeviceGetNvLinkRemoteDeviceType", 0),
)  # fmt: skip
FIELDS = (
    (82, 0), (83, 0), (91, 0), (138, 0xFFFFFFFF), (139, 0xFFFFFFFF), (138, 0), (139, 0), (185, 0),
    (186, 0), (186, 1), (197, 0), (198, 0), (202, 0), (204, 0), (74, 0), (269, 0),
)  # fmt: skip


def raw(function: str, *arguments: object) -> dict[str, object]:
    """What the call returns, in words, and what it costs."""
    call, spent, said = getattr(pynvml, function), [], ""
    for _ in range(20):
        started = time.perf_counter()
        try:
            said = plain(call(*arguments))
        except pynvml.NVMLError as error:
            said = f"NVMLError {error.value}"
        except UnicodeDecodeError as error:
            said = f"UnicodeDecodeError {error.object!r}"
        spent.append(time.perf_counter() - started)
    return {"returned": said, "median_us": round(statistics.median(spent) * 1e6, 1)}


def plain(value: object) -> str:
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], list):
        times = [sample.timeStamp for sample in value[1]]
        newest = max(times, default=0)
        return (
            f"type {value[0]}, {len(times)} samples, newest {newest}, spread "
            f"{newest - min(times, default=0)} us, now {time.time() * 1e6:.0f} (1970) "
            f"{time.clock_gettime(time.CLOCK_BOOTTIME) * 1e6:.0f} (boot)"
        )
    if isinstance(value, list):
        return f"{len(value)} x {[str(one)[:200] for one in value[:4]]}"
    return str(value)[:400]


def fields(handle: object) -> dict[str, object]:
    found = {}
    for field, scope in FIELDS:
        answer = pynvml.nvmlDeviceGetFieldValues(handle, [(field, scope)])[0]
        found[f"{field}/{scope}"] = {
            "return": answer.nvmlReturn, "type": answer.valueType, "value": answer.value.ullVal,
            "timestamp_us": answer.timestamp, "latency_us": answer.latencyUsec,
        }  # fmt: skip
    return found


def smi() -> dict[str, list[str]]:
    """UUID -> what nvidia-smi says, in the order of QUERY; empty without it."""
    if shutil.which("nvidia-smi") is None:
        return {}
    command = ["nvidia-smi", f"--query-gpu={QUERY}", "--format=csv,noheader,nounits"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = [[cell.strip() for cell in line.split(",")] for line in answer.stdout.splitlines()]
    return {row[0]: row for row in rows}


def observe(source: NvmlSource, seconds: float) -> list[dict[str, object]]:
    """Ours and nvidia-smi's values of GPU 0, about once a second."""
    rows, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        tick = source.read(ALL)
        device = tick.devices[0]
        rows.append(
            {
                "mono_s": tick.mono_s, "values": device.values, "faults": device.faults,
                "processes": len(device.processes or ()), "smi": smi().get(device.gpu_uuid),
            }
        )  # fmt: skip
        time.sleep(1.0)
    return rows


def burn(seconds: float) -> subprocess.Popen[bytes] | str:
    """A load on GPU 0, or why there is none."""
    command = [sys.executable, str(HERE / "burn.py"), "0", str(seconds), str(BURN_MIB)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    if process.stdout.readline().strip() == b"ready":
        return process
    assert process.stderr is not None
    return process.stderr.read().decode().strip().splitlines()[-1]


def mean(rows: list[dict[str, object]], pick: object) -> float | None:
    found = [value for row in rows if (value := pick(row)) is not None]
    return statistics.fmean(found) if found else None


def number(row: dict[str, object], position: int) -> float | None:
    try:
        return float(row["smi"][position])
    except (TypeError, ValueError, IndexError):
        return None


def compare(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """Means of the loaded time, the first seconds left out: ours and nvidia-smi's."""
    steady = rows[4:-1] or rows
    pairs = (
        ("utilisation %", "util_ratio", 100.0, 1, 5.0),
        ("memory MiB", "mem_used_mib", 1.0, 2, 64.0),
        ("power W", "power_mw", 1e-3, 4, None),
        ("temperature C", "temperature_c", 1.0, 5, 3.0),
    )
    found = []
    for name, metric, unit, position, most in pairs:
        ours = mean(steady, lambda row, m=metric: row["values"].get(m))
        theirs = mean(steady, lambda row, p=position: number(row, p))
        if ours is None or theirs is None:
            found.append({"what": name, "ours": ours, "nvidia-smi": theirs, "ok": None})
            continue
        ours *= unit
        allowed = 0.05 * theirs if most is None else most
        ok = abs(ours - theirs) <= allowed
        found.append({"what": name, "ours": ours, "nvidia-smi": theirs, "ok": ok})
    found.append(energy(steady))
    return found


def energy(rows: list[dict[str, object]]) -> dict[str, object]:
    """The energy counter against power over time: they should be within a tenth."""
    ends = [row for row in rows if "energy_total_mj" in row["values"]]
    if len(ends) < 2:
        return {"what": "energy J", "ours": None, "power x time": None, "ok": None}
    span = ends[-1]["mono_s"] - ends[0]["mono_s"]
    counted = (ends[-1]["values"]["energy_total_mj"] - ends[0]["values"]["energy_total_mj"]) / 1e3
    power = mean(ends, lambda row: row["values"].get("power_mw")) or 0.0
    integrated = power / 1e3 * span
    ok = abs(counted - integrated) <= 0.1 * max(counted, integrated, 1.0)
    return {"what": "energy J", "ours": counted, "power x time": integrated, "ok": ok}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--library")
    options = parser.parse_args()
    nvml = Nvml.open(options.library)
    source = NvmlSource(nvml, clock=lambda: datetime.now(UTC), monotonic=time.monotonic)
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    idle = observe(source, min(5.0, options.seconds))
    load = burn(options.seconds)
    loaded = observe(source, options.seconds)
    record = {
        "uid": os.geteuid(),
        "driver": pynvml.nvmlSystemGetDriverVersion(),
        "nvml": pynvml.nvmlSystemGetNVMLVersion(),
        "binding": pynvml.__file__,
        "inventory": source.read(ALL).encode()["inventory"],
        "calls": {
            " ".join(str(part) for part in call): raw(call[0], handle, *call[1:]) for call in CALLS
        },
        "fields": fields(handle),
        "load": load if isinstance(load, str) else "spinning kernel of tests/gpu/burn.py",
        "idle": idle,
        "loaded": loaded,
        "comparison": compare(loaded),
        "costs": {
            name: {
                "calls": c.calls,
                "mean_us": c.total_s / c.calls * 1e6,
                "worst_us": c.worst_s * 1e6,
            }
            for name, c in nvml.costs.items()
        },
    }
    if not isinstance(load, str):
        load.wait(30)
    options.folder.mkdir(parents=True, exist_ok=True)
    (options.folder / "record.json").write_text(json.dumps(record, indent=1, default=str))
    print(json.dumps(record["comparison"], indent=1))
    return 1 if any(row["ok"] is False for row in record["comparison"]) else 0


if __name__ == "__main__":
    sys.exit(main())
