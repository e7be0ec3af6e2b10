"""The one door to the NVIDIA driver, over the module `pynvml` of the package nvidia-ml-py.

`Nvml.call` turns every answer into a value with a status, so that no reader above handles driver
errors: an unsupported query, a missing symbol or a lost device is a fact about that value. Only
the end of the library itself is an exception. State does not survive a fork: open it in the
process that uses it.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import pynvml

from collector.errors import DriverGoneError, DriverMissingError, ShadowedBindingError
from collector.telemetry.status import Status

# Codes by what they mean for one value (names and numbers: nvml.h).
_STATUS_BY_CODE = {
    2: Status.NOT_SUPPORTED,  # INVALID_ARGUMENT: this device has no such thing
    3: Status.NOT_SUPPORTED,
    4: Status.NO_PERMISSION,
    6: Status.NOT_SUPPORTED,  # NOT_FOUND
    13: Status.NOT_SUPPORTED,  # FUNCTION_NOT_FOUND: the driver is older than the binding
    15: Status.LOST,  # GPU_IS_LOST
    16: Status.LOST,  # RESET_REQUIRED
    21: Status.STALE,  # NO_DATA
    25: Status.NOT_SUPPORTED,  # ARGUMENT_VERSION_MISMATCH
    26: Status.NOT_SUPPORTED,  # DEPRECATED
    27: Status.STALE,  # NOT_READY
    28: Status.LOST,  # GPU_NOT_FOUND
}
# UNINITIALIZED, DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND, LIB_RM_VERSION_MISMATCH
_LIBRARY_CODES = frozenset({1, 9, 12, 18})
# SUCCESS after a sizing call that found nothing, and NOT_FOUND: there is no new sample.
_EMPTY_CODES = frozenset({0, 6})
_FUNCTION_NOT_FOUND = 13

MISSING = (
    "no NVIDIA driver library found (libnvidia-ml.so.1): on a machine without a GPU this is as it "
    "should be; on a GPU node install the driver, or give the container the NVIDIA runtime"
)

ALL_LINKS = 0xFFFFFFFF
NO_INSTANCE = 0xFFFFFFFF
MEMORY_V2: int = getattr(pynvml, "nvmlMemory_v2", 0x02000028)


@dataclass(slots=True)
class CallCost:
    """What the calls of one function cost so far."""

    calls: int = 0
    total_s: float = 0.0
    worst_s: float = 0.0


class Nvml:
    """An initialised driver library. ``in_call``: the function being waited for, and since when."""

    def __init__(self) -> None:
        self.costs: dict[str, CallCost] = {}
        self.in_call: tuple[str, float] | None = None
        self._functions: dict[str, Callable[..., Any]] = {}
        self._absent: set[str] = set()

    @classmethod
    def open(cls, library: str | None = None) -> Nvml:
        """Load and initialise the library; ``library``: its path where the loader finds none.

        Raises DriverMissingError with what to do, ShadowedBindingError for a foreign `pynvml`.
        """
        refuse_shadow(pynvml.__file__, is_package=hasattr(pynvml, "__path__"))
        if library is not None:
            _load(library)
        door = cls()
        door.in_call = ("nvmlInit", time.perf_counter())
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            raise DriverMissingError(_why_not(error)) from error
        except pynvml.NVMLLibraryMismatchError as error:
            raise DriverMissingError(
                f"{error}: the binding nvidia-ml-py is older than the driver asks for; upgrade it"
            ) from error
        finally:
            door.in_call = None
        return door

    def call(self, function: str, *args: Any) -> tuple[Any, Status]:
        """Call ``function`` and give (value, OK), or (None, why not).

        Raises DriverGoneError when the library itself stopped answering.
        """
        if function in self._absent:
            return None, Status.NOT_SUPPORTED
        bound = self._functions.get(function) or self._bind(function)
        if bound is None:
            return None, Status.NOT_SUPPORTED
        started = time.perf_counter()
        self.in_call = (function, started)
        try:
            return bound(*args), Status.OK
        except pynvml.NVMLError as error:
            return None, self._status(function, int(error.value))
        except UnicodeDecodeError as error:
            # Some drivers put bytes that are no UTF-8 into names; the binding decodes strictly.
            return error.object.decode("utf-8", "replace"), Status.OK
        finally:
            self.in_call = None
            self._count(function, time.perf_counter() - started)

    def rows(self, function: str, *args: Any) -> tuple[Sequence[Any], Status]:
        """`call` for lists: "nothing new", in all the ways a driver says it, is an empty list."""
        bound = self._functions.get(function) or self._bind(function)
        if bound is None:
            return (), Status.NOT_SUPPORTED
        started = time.perf_counter()
        self.in_call = (function, started)
        try:
            return bound(*args), Status.OK
        except pynvml.NVMLError as error:
            code = int(error.value)
            return (), Status.OK if code in _EMPTY_CODES else self._status(function, code)
        finally:
            self.in_call = None
            self._count(function, time.perf_counter() - started)

    def close(self) -> None:
        """Shut the library down. Never while another thread may be inside a call: it crashes."""
        self.call("nvmlShutdown")

    def _bind(self, function: str) -> Callable[..., Any] | None:
        found = getattr(pynvml, function, None)
        if found is None:  # an older binding than the code was written for
            self._absent.add(function)
            return None
        bound: Callable[..., Any] = found
        self._functions[function] = bound
        return bound

    def _status(self, function: str, code: int) -> Status:
        if code in _LIBRARY_CODES:
            raise DriverGoneError(
                f"the NVIDIA driver library stopped answering ({function}: {_words(code)}): "
                "the collector must start anew"
            )
        if code == _FUNCTION_NOT_FOUND:
            self._absent.add(function)
        return _STATUS_BY_CODE.get(code, Status.FAILED)

    def _count(self, function: str, duration_s: float) -> None:
        cost = self.costs.setdefault(function, CallCost())
        cost.calls += 1
        cost.total_s += duration_s
        cost.worst_s = max(cost.worst_s, duration_s)


def refuse_shadow(module_file: str | None, *, is_package: bool) -> None:
    """Raise ShadowedBindingError if the module `pynvml` is not nvidia-ml-py's."""
    try:
        ours = Path(str(metadata.distribution("nvidia-ml-py").locate_file("pynvml.py")))
    except metadata.PackageNotFoundError:
        raise ShadowedBindingError(
            "the package nvidia-ml-py is not installed: run `pip install nvidia-ml-py`"
        ) from None
    if is_package or module_file is None or Path(module_file).resolve() != ours.resolve():
        raise ShadowedBindingError(
            f"the module pynvml at {module_file} is not the one of nvidia-ml-py: run "
            "`pip uninstall pynvml && pip install --force-reinstall nvidia-ml-py`"
        )


def field_number(field: Any) -> float | None:
    """The number in a field value, by its type tag; None for a tag unknown here."""
    names = {0: "dVal", 1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal", 6: "usVal"}
    name = names.get(int(field.valueType))
    return None if name is None else float(getattr(field.value, name))


def field_status(field: Any) -> Status:
    """Whether this one field came; the call as a whole never fails for a single field."""
    code = int(field.nvmlReturn)
    return Status.OK if code == 0 else _STATUS_BY_CODE.get(code, Status.FAILED)


def gpm_request(sample1: Any, sample2: Any, metric_ids: Sequence[int]) -> Any:
    """The question for `nvmlGpmMetricsGet`: these metrics between two samples."""
    request = pynvml.c_nvmlGpmMetricsGet_t()
    request.version = 1
    request.numMetrics = len(metric_ids)
    request.sample1, request.sample2 = sample1, sample2
    for position, metric_id in enumerate(metric_ids):
        request.metrics[position].metricId = metric_id
    return request


def fabric_request() -> Any:
    """An empty answer for `nvmlDeviceGetGpuFabricInfoV`, and the pointer to pass."""
    return pynvml.c_nvmlGpuFabricInfo_v2_t()


def pointer(structure: Any) -> Any:
    """The structure as the driver wants it."""
    return ctypes.byref(structure)


def device_of(event: Any) -> Any:
    """The device handle in an event."""
    return event.device


def _load(library: str) -> None:
    try:
        loaded = ctypes.CDLL(library)
    except OSError as error:
        raise DriverMissingError(
            f"{library} cannot be loaded as the driver library: {error}"
        ) from error
    if pynvml.nvmlLib is not None and pynvml.nvmlLib._handle == loaded._handle:
        return
    pynvml.nvmlLib = loaded
    pynvml._nvmlGetFunctionPointer_cache.clear()


def _why_not(error: Any) -> str:
    code = int(error.value)
    if code == 12:
        return MISSING
    return (
        f"the NVIDIA driver cannot be used ({_words(code)}): run nvidia-smi and see the kernel log"
    )


def _words(code: int) -> str:
    names = {
        1: "not initialised", 4: "no permission", 9: "driver not loaded", 12: "library not found",
        18: "library and kernel module have different versions: reload the driver or reboot",
    }  # fmt: skip
    return names.get(code, f"NVML error {code}")
