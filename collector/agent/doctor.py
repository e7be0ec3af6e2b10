"""What the agent finds on this node, which permission is missing, and what that costs."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from collector.agent.permissions import clock_is_held, missing_capabilities
from collector.agent.reader import ReaderProcess, ReaderSettings, ReaderState
from collector.agent.schedule import Intervals
from collector.host.kernel_log import KernelLog
from collector.host.network import Network
from collector.mapping.kubernetes import SOCKETS
from collector.mapping.node import NodeMapper
from collector.mapping.slurm import MAP_FOLDERS
from collector.telemetry.status import Status
from collector.telemetry.tick import Tick

# Names of programs (15 characters, as the kernel keeps them) that publish DCGM_FI_* series.
_DCGM_EXPORTERS = frozenset({"dcgm-exporter"})
_OTHER_EXPORTERS = frozenset({"nvidia_gpu_expo", "nvitop-exporter", "all-smi", "ceems_exporter"})


@dataclass(frozen=True, slots=True)
class NodeFinding:
    """One check. ``state`` ok, absent (as it should be on some machines), warning or failed."""

    check: str
    state: str
    found: str
    remedy: str = ""


def examine(
    settings: ReaderSettings | None = None,
    *,
    proc: Path = Path("/proc"),
    sys: Path = Path("/sys"),
    mapper: NodeMapper | None = None,
    timeout_s: float = 30.0,
) -> Iterator[NodeFinding]:
    """Every check that this node allows; reads two ticks through a reader process."""
    tick, reader = _two_ticks(settings or ReaderSettings(), timeout_s)
    yield _driver(tick, reader)
    if tick is not None:
        yield from _devices(tick)
        yield from _values(tick)
        yield from _mapping(tick, mapper or NodeMapper())
    yield from _permissions(proc)
    yield from _host(proc, sys)
    yield from _exporters(proc)


def running(proc: Path, names: frozenset[str]) -> list[str]:
    """Which of the programs run on this node, as far as /proc shows."""
    found = set()
    for file in proc.glob("[0-9]*/comm"):
        try:
            name = file.read_text(errors="replace").strip()
        except OSError:
            continue
        if name in names:
            found.add(name)
    return sorted(found)


def dcgm_exporters(proc: Path = Path("/proc")) -> list[str]:
    """Programs that publish the DCGM names already; a second one doubles every sum."""
    return running(proc, _DCGM_EXPORTERS)


def _two_ticks(settings: ReaderSettings, timeout_s: float) -> tuple[Tick | None, ReaderProcess]:
    """The second tick has what needs two: GPM, the sample buffer."""
    quick = ReaderSettings(
        kind=settings.kind, library=settings.library, path=settings.path,
        intervals=Intervals(0.3, 0.3, 0.3, 0.3, 60.0), environment=settings.environment,
        call_deadline_s=min(settings.call_deadline_s, timeout_s),
    )  # fmt: skip
    reader, newest = ReaderProcess(quick), None
    end = time.monotonic() + timeout_s
    ticks = 0
    try:
        while ticks < 2 and time.monotonic() < end:
            tick = reader.wait(0.2)
            if tick is not None:
                newest, ticks = tick, ticks + 1
            elif reader.state in (ReaderState.NO_DRIVER, ReaderState.HUNG):
                break
        state, message = reader.state, reader.message
    finally:
        reader.stop()
    reader.state, reader.message = state, message
    return newest, reader


def _driver(tick: Tick | None, reader: ReaderProcess) -> NodeFinding:
    if reader.state is ReaderState.NO_DRIVER:
        missing = "no NVIDIA driver library found" in reader.message
        found, _, remedy = reader.message.partition(": ")
        return NodeFinding("driver", "absent" if missing else "failed", found, remedy)
    if tick is None:
        return NodeFinding(
            "driver", "failed", reader.message or f"no answer ({reader.state})",
            "see the kernel log (dmesg); a driver that hangs needs a reset or a reboot",
        )  # fmt: skip
    version = next((d.driver_version for d in tick.inventory if d.driver_version), "unknown")
    binding = metadata.version("nvidia-ml-py")
    return NodeFinding(
        "driver", "ok", f"version {version}, {len(tick.inventory)} GPUs, binding {binding}"
    )


def _devices(tick: Tick) -> Iterator[NodeFinding]:
    bad = [d for d in tick.inventory if d.status is not Status.OK]
    for device in bad:
        remedy = "reset or reboot; until then its time counts as lost"
        if device.status is Status.NO_PERMISSION:
            remedy = "give the agent access to the device (NVIDIA_VISIBLE_DEVICES=all)"
        yield NodeFinding("gpu", "warning", f"{device.gpu_uuid}: {device.status}", remedy)
    models = Counter(d.name or "unnamed" for d in tick.inventory if d.status is Status.OK)
    for model, count in sorted(models.items()):
        yield NodeFinding("gpu", "ok", f"{count} x {model}")


def _values(tick: Tick) -> Iterator[NodeFinding]:
    denied = sorted(
        {name for d in tick.devices for name, s in d.faults.items() if s is Status.NO_PERMISSION}
    )
    if denied:
        yield NodeFinding(
            "permissions", "warning", f"not permitted: {', '.join(denied)}",
            "CAP_SYS_ADMIN, and for MIG NVIDIA_MIG_MONITOR_DEVICES=all; without it these values "
            "stay unknown",
        )  # fmt: skip
    mig = any(d.mig for d in tick.inventory)
    active = any("sm_active_ratio" in d.values for d in tick.devices)
    if mig and not active:
        yield NodeFinding(
            "mig", "warning", "MIG utilization is not available on this GPU",
            "only Hopper and newer can tell (GPM); instances count as held, never as idle",
        )  # fmt: skip


def _mapping(tick: Tick, mapper: NodeMapper) -> Iterator[NodeFinding]:
    attribution = mapper.attribute(tick)
    for source, words in sorted(attribution.errors.items()):
        yield NodeFinding(f"mapping: {source}", "warning", words, "see docs/agent.md, permissions")
    if attribution.unattributed and "processes" not in attribution.errors:
        yield NodeFinding(
            "mapping", "warning", f"{attribution.unattributed} processes on a GPU are not in /proc",
            "their use is kept as unattributed; hostPID shows them",
        )  # fmt: skip
    kinds = Counter(h.key.partition(":")[0] for h in attribution.holdings)
    held = ", ".join(f"{count} by {kind}" for kind, count in sorted(kinds.items()))
    yield NodeFinding("mapping", "ok", f"GPUs held: {held or 'none'}")


def _permissions(proc: Path) -> Iterator[NodeFinding]:
    for name, cost in missing_capabilities(proc):
        remedy = f"give the agent {name} (docs/agent.md); without it {cost}"
        yield NodeFinding("permissions", "warning", f"{name} is missing", remedy)


def _host(proc: Path, sys: Path) -> Iterator[NodeFinding]:
    if clock_is_held() is False:
        yield NodeFinding(
            "clock", "warning", "nothing keeps the clock of this node",
            "run chrony or another NTP client: batches more than five minutes ahead are refused",
        )  # fmt: skip
    if (
        not (sys / "fs/cgroup/cgroup.controllers").exists()
        and not (sys / "fs/cgroup/memory").is_dir()
    ):
        yield NodeFinding(
            "control groups", "warning", f"no control groups under {sys / 'fs/cgroup'}",
            "mount the host's /sys/fs/cgroup; without it CPU, memory and pressure of jobs stay "
            "unknown, and a finished pod that the kubelet still lists counts as holding",
        )  # fmt: skip
    if Network(sys).counters() == (None, None):
        yield NodeFinding(
            "network", "absent", "no InfiniBand, RoCE or Ethernet counters in sysfs",
            "mount the host's /sys; without it a crowded network is not seen",
        )  # fmt: skip
    if not (proc / "pressure").is_dir():
        yield NodeFinding(
            "pressure", "absent", "the kernel keeps no pressure (PSI)",
            "boot with psi=1; without it waiting for CPU, memory or disk is not seen",
        )  # fmt: skip
    if not any(path.exists() for path in SOCKETS) and not any(
        folder.is_dir() for folder in MAP_FOLDERS
    ):
        yield NodeFinding(
            "allocation map", "absent", "neither a kubelet socket nor a map of Slurm's prolog",
            "on Slurm nodes install deploy/slurm/gpu-map-prolog.sh: a job that holds a GPU and "
            "runs nothing on it is otherwise known from the scheduler only",
        )  # fmt: skip
    if not KernelLog().readable:
        yield NodeFinding(
            "kernel log", "absent", "/dev/kmsg may not be read",
            "CAP_SYSLOG; without it Xids that the driver does not report as events are missed",
        )  # fmt: skip


def _exporters(proc: Path) -> Iterator[NodeFinding]:
    for name in dcgm_exporters(proc):
        yield NodeFinding(
            "exporters", "warning", f"{name} runs on this node",
            "leave --dcgm-names off: two exporters with the same names double every sum",
        )  # fmt: skip
    for name in running(proc, _OTHER_EXPORTERS):
        yield NodeFinding("exporters", "ok", f"{name} runs on this node, under names of its own")
