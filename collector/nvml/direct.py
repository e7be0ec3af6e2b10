"""The calls that a tick makes for every GPU, without the binding's objects.

The binding allocates cells, structures and lists for each answer and reads their members through
ctypes one by one; for eight GPUs that is most of a tick. Here a function keeps its cells and takes
an answer apart at once. The layouts are tested against the binding's. Not for several threads.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import pynvml

_INSUFFICIENT_SIZE = 7
_TRIES = 4  # processes may start between two questions
_UUID_BYTES = 96
MEMORY_V2: int = getattr(pynvml, "nvmlMemory_v2", 0x02000028)

# nvmlMemory_v2_t: version, total, reserved, free, used.
MEMORY = struct.Struct("=I4xQQQQ")
# nvmlProcessInfo_t of _v3: pid, memory, GPU instance, compute instance.
PROCESS = struct.Struct("=I4xQII")
# nvmlProcessUtilizationSample_t: pid, time, SM, memory, encoder, decoder.
PROCESS_USE = struct.Struct("=I4xQIIII")
UTILISATION = struct.Struct("=II")

Ask = Callable[..., Any]


class Memory(NamedTuple):
    """Bytes; ``used`` without what the driver keeps for itself."""

    version: int
    total: int
    reserved: int
    free: int
    used: int


class Utilisation(NamedTuple):
    """Percent."""

    gpu: int
    memory: int


class ProcessRow(NamedTuple):
    """A process as the driver lists it; members are named as the binding names them."""

    pid: int
    usedGpuMemory: int  # noqa: N815 - the binding's name
    gpuInstanceId: int  # noqa: N815
    computeInstanceId: int  # noqa: N815


class ProcessUseRow(NamedTuple):
    """How busy a process was in one of the driver's samples, in percent."""

    pid: int
    timeStamp: int  # noqa: N815 - the binding's name
    smUtil: int  # noqa: N815
    memUtil: int  # noqa: N815
    encUtil: int  # noqa: N815
    decUtil: int  # noqa: N815


def _call(symbol: str, *args: Any) -> None:
    code = pynvml._nvmlGetFunctionPointer(symbol)(*args)
    if code != 0:
        raise pynvml.NVMLError(code)


def _number(symbol: str, kind: Any) -> Ask:
    cell = kind()
    reference = ctypes.byref(cell)

    def ask(handle: Any, *args: int) -> int:
        code = pynvml._nvmlGetFunctionPointer(symbol)(handle, *args, reference)
        if code != 0:
            raise pynvml.NVMLError(code)
        return int(cell.value)

    return ask


def _mig_mode() -> Ask:
    now, pending = ctypes.c_uint(), ctypes.c_uint()
    references = ctypes.byref(now), ctypes.byref(pending)

    def ask(handle: Any) -> tuple[int, int]:
        _call("nvmlDeviceGetMigMode", handle, *references)
        return now.value, pending.value

    return ask


def _uuid() -> Ask:
    block = ctypes.create_string_buffer(_UUID_BYTES)

    def ask(handle: Any) -> str:
        _call("nvmlDeviceGetUUID", handle, block, _UUID_BYTES)
        return block.value.decode("utf-8", "replace")

    return ask


def _utilisation() -> Ask:
    block = ctypes.create_string_buffer(UTILISATION.size)

    def ask(handle: Any) -> Utilisation:
        _call("nvmlDeviceGetUtilizationRates", handle, block)
        return Utilisation(*UTILISATION.unpack(block.raw))

    return ask


def _memory_v2() -> Ask:
    block = ctypes.create_string_buffer(MEMORY.size)

    def ask(handle: Any) -> Memory:
        MEMORY.pack_into(block, 0, MEMORY_V2, 0, 0, 0, 0)
        _call("nvmlDeviceGetMemoryInfo_v2", handle, block)
        return Memory(*MEMORY.unpack(block.raw))

    return ask


def _processes(symbol: str) -> Ask:
    """The list in one call where the room of the last time is enough."""
    count, block = ctypes.c_uint(), ctypes.create_string_buffer(64 * PROCESS.size)

    def ask(handle: Any) -> list[ProcessRow]:
        nonlocal block
        for _ in range(_TRIES):
            room = len(block) // PROCESS.size
            count.value = room
            code = pynvml._nvmlGetFunctionPointer(symbol)(handle, ctypes.byref(count), block)
            if code == 0:
                rows = memoryview(block)[: min(count.value, room) * PROCESS.size]
                return [ProcessRow(*row) for row in PROCESS.iter_unpack(rows)]
            if code != _INSUFFICIENT_SIZE:
                break
            block = ctypes.create_string_buffer(max(2 * count.value, 2 * room) * PROCESS.size)
        raise pynvml.NVMLError(code)

    return ask


def _process_use() -> Ask:
    """As the binding does it: the driver is asked for the size first, then for the samples."""
    symbol, count = "nvmlDeviceGetProcessUtilization", ctypes.c_uint()

    def ask(handle: Any, since: int) -> list[ProcessUseRow]:
        count.value = 0
        function, seen = pynvml._nvmlGetFunctionPointer(symbol), ctypes.c_ulonglong(since)
        code = function(handle, None, ctypes.byref(count), seen)
        if code != _INSUFFICIENT_SIZE:
            raise pynvml.NVMLError(code)  # also for success: there is nothing
        room = count.value
        block = ctypes.create_string_buffer(room * PROCESS_USE.size)
        _call(symbol, handle, block, ctypes.byref(count), seen)
        rows = memoryview(block)[: min(count.value, room) * PROCESS_USE.size]
        return [ProcessUseRow(*row) for row in PROCESS_USE.iter_unpack(rows)]

    return ask


def functions() -> dict[str, Ask]:
    """Our own way of calling, by the name under which a door knows it."""
    wide, narrow = ctypes.c_ulonglong, ctypes.c_uint
    found: dict[str, Ask] = {
        name: _number(name, kind)
        for name, kind in (
            ("nvmlDeviceGetPowerUsage", narrow),
            ("nvmlDeviceGetTotalEnergyConsumption", wide),
            ("nvmlDeviceGetTemperature", narrow),
            ("nvmlDeviceGetClockInfo", narrow),
            ("nvmlDeviceGetCurrentClocksEventReasons", wide),
            ("nvmlDeviceGetTotalEccErrors", wide),
            ("nvmlDeviceGetPcieReplayCounter", narrow),
        )
    }
    for name in ("Compute", "Graphics", "MPSCompute"):
        symbol = f"nvmlDeviceGet{name}RunningProcesses"
        found[symbol] = _processes(f"{symbol}_v3")
    return found | {
        "nvmlDeviceGetMigMode": _mig_mode(),
        "nvmlDeviceGetUUID": _uuid(),
        "nvmlDeviceGetUtilizationRates": _utilisation(),
        "nvmlDeviceGetMemoryInfo_v2": _memory_v2(),
        "nvmlDeviceGetProcessUtilization": _process_use(),
    }
