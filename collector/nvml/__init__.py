"""The one door to the NVIDIA driver, over the module `pynvml` of the package nvidia-ml-py.

`Nvml.call` turns every answer into a value with a status, so that no reader above handles driver
errors: an unsupported query, a missing symbol or a lost device is a fact about that value. Only
the end of the library itself is an exception. State does not survive a fork: open it in the
process that uses it.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import pynvml

from collector.errors import DriverGoneError, DriverMissingError
from collector.nvml import direct
from collector.telemetry.binding import MISSING, refuse_shadow, words
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
_NO_CODES: frozenset[int] = frozenset()
_FUNCTION_NOT_FOUND = 13

ALL_LINKS = 0xFFFFFFFF
NO_INSTANCE = 0xFFFFFFFF

FieldIds = tuple[tuple[int, int], ...]
Field = tuple[float | None, Status]
# nvmlFieldValue_t: field, scope, timestamp, latency, type of the value, return code, value.
_FIELD = struct.Struct("=IIqqIiQ")
# By the type tag: double, unsigned int, unsigned long, unsigned long long, long long, int, short.
_UNSIGNED_LONG = frozenset({2, 3})
_VALUES = {0: struct.Struct("=d"), 1: struct.Struct("=I4x"), 4: struct.Struct("=q"),
           5: struct.Struct("=i4x"), 6: struct.Struct("=H6x")}  # fmt: skip
_EIGHT = struct.Struct("=Q")


def _field(tag: int, code: int, raw: int) -> Field:
    if code != 0:
        return None, _STATUS_BY_CODE.get(code, Status.FAILED)
    layout = _VALUES.get(tag)
    if layout is None:
        return None, Status.FAILED
    return float(layout.unpack(_EIGHT.pack(raw))[0]), Status.OK


def _field_values(handle: Any, count: int, block: Any) -> None:
    code = pynvml._nvmlGetFunctionPointer("nvmlDeviceGetFieldValues")(handle, count, block)
    if code != 0:
        raise pynvml.NVMLError(code)


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
        self._ours: dict[str, Callable[..., Any]] = direct.functions()
        self._ours["_field_values"] = _field_values
        self._functions: dict[str, tuple[Callable[..., Any], CallCost]] = {}
        self._absent: set[str] = set()
        self._questions: dict[FieldIds, bytes] = {}

    @classmethod
    def open(cls, library: str | None = None) -> Nvml:
        """Load and initialise the library; ``library``: its path where the loader finds none.

        Raises DriverMissingError with what to do, ShadowedBindingError for a foreign `pynvml`.
        """
        refuse_shadow(pynvml.__file__, is_package=hasattr(pynvml, "__path__"))
        if library is not None:
            _load(library)
        door = cls()
        door.in_call = ("nvmlInit", perf_counter())
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

    def call(
        self, function: str, *args: Any, empty: frozenset[int] = _NO_CODES
    ) -> tuple[Any, Status]:
        """Call ``function`` and give (value, OK), or (None, why not).

        Raises DriverGoneError when the library itself stopped answering.
        """
        known = self._functions.get(function) or self._bind(function)
        if known is None:
            return None, Status.NOT_SUPPORTED
        bound, cost = known
        started = perf_counter()
        self.in_call = (function, started)
        try:
            return bound(*args), Status.OK
        except pynvml.NVMLError as error:
            code = int(error.value)
            return None, Status.OK if code in empty else self._status(function, code)
        except UnicodeDecodeError as error:
            # Some drivers put bytes that are no UTF-8 into names; the binding decodes strictly.
            return error.object.decode("utf-8", "replace"), Status.OK
        finally:
            self.in_call = None
            duration_s = perf_counter() - started
            cost.calls += 1
            cost.total_s += duration_s
            if duration_s > cost.worst_s:
                cost.worst_s = duration_s

    def rows(self, function: str, *args: Any) -> tuple[Sequence[Any], Status]:
        """`call` for lists: "nothing new", in all the ways a driver says it, is an empty list."""
        found, status = self.call(function, *args, empty=_EMPTY_CODES)
        return found or (), status

    def fields(self, handle: Any, ids: FieldIds) -> tuple[Sequence[Field], Status]:
        """Field values by (field id, scope): each with a status of its own, in the order asked.

        The binding sets and reads every member of every field through ctypes; with eighty links'
        counters per GPU that is most of a tick. Here the question is one copied block and the
        answer is taken apart at once (the layout is tested against the binding's).
        """
        block = self._questions.get(ids)
        if block is None:
            asked = (_FIELD.pack(field, scope, 0, 0, 0, 0, 0) for field, scope in ids)
            block = self._questions.setdefault(ids, b"".join(asked))
        answer = (ctypes.c_char * len(block)).from_buffer_copy(block)
        _, status = self.call("_field_values", handle, len(ids), answer)
        if status is not Status.OK:
            return (), status
        return [
            (float(raw), Status.OK)
            if code == 0 and tag in _UNSIGNED_LONG
            else _field(tag, code, raw)
            for _, _, _, _, tag, code, raw in _FIELD.iter_unpack(answer.raw)
        ], Status.OK

    def close(self) -> None:
        """Shut the library down. Never while another thread may be inside a call: it crashes."""
        self.call("nvmlShutdown")

    def _bind(self, function: str) -> tuple[Callable[..., Any], CallCost] | None:
        """How to call it, and its cost; None for one that an older binding or driver lacks."""
        if function in self._absent:
            return None
        bound = self._ours.get(function) or getattr(pynvml, function, None)
        if bound is None:
            self._absent.add(function)
            return None
        known = self._functions[function] = (bound, self.costs.setdefault(function, CallCost()))
        return known

    def _status(self, function: str, code: int) -> Status:
        if code in _LIBRARY_CODES:
            raise DriverGoneError(
                f"the NVIDIA driver library stopped answering ({function}: {words(code)}): "
                "the collector must start anew"
            )
        if code == _FUNCTION_NOT_FOUND:
            self._absent.add(function)
            self._functions.pop(function, None)
        return _STATUS_BY_CODE.get(code, Status.FAILED)


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
        f"the NVIDIA driver cannot be used ({words(code)}): run nvidia-smi and see the kernel log"
    )
