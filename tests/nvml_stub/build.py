"""Compile the stub driver library: ``python build.py FOLDER [--bare]`` prints the library's path.

``--bare`` leaves out every symbol that the stub does not implement, as an old driver does;
otherwise each such symbol exists and says "not supported".
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pynvml

HERE = Path(__file__).parent
NAME = "libnvidia-ml.so.1"


def build(folder: Path, *, bare: bool = False) -> Path:
    """Compile into ``folder`` and return the library; FileNotFoundError without gcc."""
    gcc = shutil.which("gcc")
    if gcc is None:
        raise FileNotFoundError("gcc")
    folder.mkdir(parents=True, exist_ok=True)
    sources = [str(HERE / "nvmlstub.c")]
    if not bare:
        fallback = folder / "fallback.c"
        fallback.write_text("".join(f"int {name}(void) {{ return 3; }}\n" for name in missing()))
        sources.append(str(fallback))
    library = folder / NAME
    command = [gcc, "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", f"-Wl,-soname,{NAME}"]
    subprocess.run([*command, "-o", str(library), *sources, "-lpthread"], check=True)
    return library


def missing() -> list[str]:
    """The symbols that the binding can look up and the stub does not have."""
    binding = Path(pynvml.__file__).read_text(encoding="utf-8")
    wanted = set(re.findall(r'_nvmlGetFunctionPointer\("(\w+)"\)', binding))
    stub = (HERE / "nvmlstub.c").read_text(encoding="utf-8")
    have = set(re.findall(r"^(?:R|const char \*|ONE\()\s?(nvml\w+)", stub, re.MULTILINE))
    return sorted(wanted - have)


if __name__ == "__main__":
    print(build(Path(sys.argv[1]), bare="--bare" in sys.argv[2:]))
