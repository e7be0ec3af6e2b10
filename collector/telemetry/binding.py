"""The Python binding of the driver: whether it is the right one, and its errors in words."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

from collector.errors import ShadowedBindingError

MISSING = (
    "no NVIDIA driver library found (libnvidia-ml.so.1): on a machine without a GPU this is as it "
    "should be; on a GPU node install the driver, or give the container the NVIDIA runtime"
)


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


def words(code: int) -> str:
    """What an NVML error code means."""
    names = {
        1: "not initialised", 4: "no permission", 9: "driver not loaded", 12: "library not found",
        18: "library and kernel module have different versions: reload the driver or reboot",
    }  # fmt: skip
    return names.get(code, f"NVML error {code}")
