"""The one door to the driver: every answer is a value with a status, or the end of the library."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pynvml
import pytest

from collector.errors import DriverGoneError, DriverMissingError, ShadowedBindingError
from collector.nvml import Nvml, direct
from collector.telemetry.binding import refuse_shadow
from collector.telemetry.status import Status

STRUCTURES = (
    "c_nvmlMemory_t", "c_nvmlMemory_v2_t", "c_nvmlUtilization_t", "nvmlPciInfo_t",
    "c_nvmlProcessInfo_v3_t", "c_nvmlProcessUtilizationSample_t", "c_nvmlSample_t",
    "c_nvmlFieldValue_t", "c_nvmlEventData_t", "c_nvmlDeviceAttributes",
    "c_nvmlAccountingStats_t", "c_nvmlGpmSupport_t", "c_nvmlGpmMetric_t",
    "c_nvmlGpuFabricInfo_v2_t",
)  # fmt: skip


@pytest.mark.parametrize("name", STRUCTURES)
def test_the_binding_and_the_stub_have_the_same_layout(stub_library, name):
    stub = ctypes.CDLL(stub_library)
    stub.stub_sizeof.restype = ctypes.c_size_t
    assert stub.stub_sizeof(name.encode()) == ctypes.sizeof(getattr(pynvml, name))


@pytest.mark.parametrize(
    ("ours", "name"),
    [
        (direct.MEMORY, "c_nvmlMemory_v2_t"),
        (direct.PROCESS, "c_nvmlProcessInfo_v3_t"),
        (direct.PROCESS_USE, "c_nvmlProcessUtilizationSample_t"),
        (direct.UTILISATION, "c_nvmlUtilization_t"),
    ],
)
def test_what_is_taken_apart_without_the_binding_lies_where_the_binding_has_it(ours, name):
    structure = getattr(pynvml, name)
    filled = structure.from_buffer_copy(bytes(range(1, ours.size + 1)))
    wanted = [getattr(filled, member[0]) for member in structure._fields_]
    assert ours.size == ctypes.sizeof(structure)
    assert list(ours.unpack(bytes(filled))) == wanted


def test_a_process_list_that_outgrows_its_room_is_read_whole(door, scenario):
    scenario.set({"gpu.proc_base": 5000, "gpu.proc_count": 1000})
    handle, _ = door.call("nvmlDeviceGetHandleByIndex", 0)
    rows, status = door.rows("nvmlDeviceGetComputeRunningProcesses", handle)
    assert status is Status.OK
    assert [row.pid for row in rows] == list(range(5000, 6000))


def test_without_a_driver_library_the_message_says_so_and_what_to_do():
    code = (
        "from collector.nvml import Nvml\n"
        "try:\n    Nvml.open()\nexcept Exception as e:\n    print(type(e).__name__, e)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    if "no NVIDIA driver library found" not in answer.stdout:
        pytest.skip("this machine has a driver library")
    assert answer.stdout.startswith("DriverMissingError")
    assert answer.stderr == ""


def test_a_path_that_is_no_library_is_named_in_the_message(tmp_path):
    with pytest.raises(DriverMissingError, match=r"nothing\.so"):
        Nvml.open(str(tmp_path / "nothing.so"))


@pytest.mark.parametrize(("code", "words"), [(9, "driver not loaded"), (18, "different versions")])
def test_a_driver_that_does_not_initialise_says_why(stub_library, scenario, code, words):
    scenario.set({"error.nvmlInit": code})
    with pytest.raises(DriverMissingError, match=words):
        Nvml.open(stub_library)


def test_the_deprecated_package_pynvml_is_refused_with_the_remedy(tmp_path):
    (tmp_path / "pynvml").mkdir()
    (tmp_path / "pynvml" / "__init__.py").write_text(
        "class NVMLError(Exception):\n    pass\n"
        "class NVMLLibraryMismatchError(Exception):\n    pass\n"
    )
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from collector.nvml import Nvml\n"
        "try:\n    Nvml.open()\nexcept Exception as e:\n    print(type(e).__name__, e)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.startswith("ShadowedBindingError")
    assert "pip uninstall pynvml" in answer.stdout


def test_the_binding_that_belongs_is_not_refused():
    refuse_shadow(pynvml.__file__, is_package=False)
    with pytest.raises(ShadowedBindingError):
        refuse_shadow("/somewhere/pynvml.py", is_package=False)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (3, Status.NOT_SUPPORTED),
        (4, Status.NO_PERMISSION),
        (15, Status.LOST),
        (16, Status.LOST),
        (21, Status.STALE),
        (999, Status.FAILED),
    ],
)
def test_an_error_code_becomes_the_status_of_the_value(door, scenario, code, status):
    scenario.set({"error.nvmlDeviceGetPowerUsage": code})
    handle, _ = door.call("nvmlDeviceGetHandleByIndex", 0)
    assert door.call("nvmlDeviceGetPowerUsage", handle) == (None, status)


def test_a_library_that_stops_answering_is_an_error_of_its_own(door, scenario):
    scenario.set(driver_gone=1)
    with pytest.raises(DriverGoneError, match="must start anew"):
        door.call("nvmlDeviceGetCount")
    scenario.set(driver_gone=None)


def test_a_symbol_that_the_driver_lacks_is_asked_for_once(bare_stub_library, scenario):
    door = Nvml.open(bare_stub_library)
    handle, _ = door.call("nvmlDeviceGetHandleByIndex", 0)
    for _ in range(3):
        assert door.call("nvmlDeviceGetNumaNodeId", handle)[1] is Status.NOT_SUPPORTED
    assert door.costs["nvmlDeviceGetNumaNodeId"].calls == 1
    door.close()


def test_bytes_that_are_no_utf8_become_a_readable_name(door, scenario):
    scenario.set({"gpu.bad_name": 1})
    handle, _ = door.call("nvmlDeviceGetHandleByIndex", 0)
    name, status = door.call("nvmlDeviceGetName", handle)
    assert status is Status.OK
    assert name.startswith("NVIDIA ")
    assert name.endswith(" GPU")


def test_success_without_samples_is_an_empty_list_and_no_error(door, scenario):
    scenario.set({"gpu.zero_samples": 1})
    handle, _ = door.call("nvmlDeviceGetHandleByIndex", 0)
    rows, status = door.rows("nvmlDeviceGetProcessUtilization", handle, 0)
    assert (list(rows), status) == ([], Status.OK)


def test_every_call_is_counted_with_its_time(door):
    before = door.costs["nvmlInit"].calls if "nvmlInit" in door.costs else 0
    door.call("nvmlDeviceGetCount")
    cost = door.costs["nvmlDeviceGetCount"]
    assert before == 0
    assert cost.calls == 1
    assert 0 < cost.worst_s == cost.total_s
