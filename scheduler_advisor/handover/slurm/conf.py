"""slurm.conf as text: settings changed in place, everything else byte for byte as it was."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

_OBJECTS = re.compile(
    r"\s*(PartitionName|NodeName|NodeSet|DownNodes|FrontendName|SlurmctldHost|Include)\b", re.I
)
_UNIT = re.compile(r"^(-?\d+) (sec|min)$")
_NO_LINE = ("SLURM_VERSION", "JobDefaults")  # shown, but no key of the file
_UNSET = {"", "(null)", "N/A", "UNLIMITED", "NONE"}
PER_PARTITION = (
    "PriorityTier",
    "PreemptMode",
    "LLN",
    "QoS",
    "DefMemPerCPU",
    "DefMemPerNode",
    "MaxTime",
    "Nodes",
)


class Conf:
    """Lines of slurm.conf; a line that goes on after a backslash counts as one."""

    def __init__(self, text: str) -> None:
        """From the text of the file; names of keys are found in any case."""
        self._lines = _logical(text)

    @classmethod
    def stored(cls, settings: Mapping[str, str]) -> Conf:
        """The lines that settings as shown by the scheduler stand for; what is unset has none."""
        lines = [
            f"{key}={shown}"
            for key, value in settings.items()
            if "." not in key and key not in _NO_LINE and (shown := _shown(value))
        ]
        lines += _per_gpu(settings.get("JobDefaults", ""))
        for name in partitions_in(settings):
            parts = [f"PartitionName={name}"]
            for key in PER_PARTITION:
                value = _shown(settings.get(f"partition.{name}.{key}", ""))
                # A partition shows the cluster's value where it has none of its own.
                inherited = key == "PreemptMode" and value == settings.get("PreemptMode")
                if value and not inherited:
                    parts.append(f"{key}={value}")
            parts += _per_gpu(settings.get(f"partition.{name}.JobDefaults", ""))
            lines.append(" ".join(parts))
        return cls("".join(f"{line}\n" for line in lines))

    def __str__(self) -> str:
        return "".join(self._lines)

    def get(self, key: str) -> str | None:
        """The last value of a setting of the whole cluster."""
        for line in reversed(self._lines):
            if not _OBJECTS.match(line) and (found := _token(key).search(_code(line))):
                return found[2].strip('"')
        return None

    def set(self, key: str, value: str | None) -> None:
        """A setting of the whole cluster; None takes every line of it out."""
        at = [
            i
            for i, line in enumerate(self._lines)
            if not _OBJECTS.match(line) and _token(key).search(_code(line))
        ]
        if value is None:
            for i in reversed(at):
                self._put(i, key, None)
        elif at:
            self._put(at[-1], key, value)
        else:
            self._lines.insert(self._end_of_settings(), f"{key}={value}\n")

    def options(self, key: str) -> list[str]:
        """A setting that is a list with commas."""
        return [option for option in (self.get(key) or "").split(",") if option]

    def set_option(self, key: str, name: str, value: str | None, flag: bool = False) -> None:
        """One ``name=value`` (or bare ``name``) in a list with commas; None takes it out."""
        kept = self.options(key)
        at = next((i for i, one in enumerate(kept) if one.split("=")[0] == name), len(kept))
        kept[at : at + 1] = [] if value is None else [name if flag else f"{name}={value}"]
        self.set(key, ",".join(kept) or None)

    def partitions(self) -> list[str]:
        """Names of the partitions, in the order of the file; DEFAULT is none."""
        names = [_name_of(line, "PartitionName") for line in self._lines]
        return [name for name in names if name and name.upper() != "DEFAULT"]

    def partition(self, name: str, key: str) -> str | None:
        """A partition's own value, else that of PartitionName=DEFAULT."""
        for wanted in (name, "DEFAULT"):
            for line in self._lines:
                if _name_of(line, "PartitionName") == wanted:
                    found = _token(key).search(_code(line))
                    if found:
                        return found[2].strip('"')
        return None

    def set_partition(self, name: str, key: str, value: str | None) -> None:
        """A partition's own value; the partition must be there."""
        self._set_object("PartitionName", name, key, value)

    def add_partition(self, name: str, values: Mapping[str, str]) -> None:
        """A new partition after the last one."""
        parts = " ".join(f"{key}={value}" for key, value in values.items())
        self._end_with_newline()
        self._lines.append(f"PartitionName={name} {parts}\n")

    def node_lines(self) -> list[str]:
        """The NodeName texts (a name or a list of names), in the order of the file."""
        names = [_name_of(line, "NodeName") for line in self._lines]
        return [name for name in names if name and name.upper() != "DEFAULT"]

    def node(self, names: str, key: str) -> str | None:
        """A value of the NodeName line with exactly this text."""
        for line in self._lines:
            if _name_of(line, "NodeName") == names and (found := _token(key).search(_code(line))):
                return found[2].strip('"')
        return None

    def set_node(self, names: str, key: str, value: str | None) -> None:
        """A value of the NodeName line with exactly this text."""
        self._set_object("NodeName", names, key, value)

    def _set_object(self, kind: str, name: str, key: str, value: str | None) -> None:
        for i, line in enumerate(self._lines):
            if _name_of(line, kind) != name:
                continue
            if _token(key).search(_code(line)):
                self._put(i, key, value)
            elif value is not None:
                code = _code(line)
                body = code.rstrip()
                self._lines[i] = f"{body} {key}={value}{code[len(body) :]}{line[len(code) :]}"
            return

    def _put(self, i: int, key: str, value: str | None) -> None:
        line = self._lines[i]
        code, tail = _code(line), line[len(_code(line)) :]
        if value is not None:
            token = _token(key)
            found = list(token.finditer(code))[-1]
            code = f"{code[: found.start(1)]}{found[1]}={value}{code[found.end(2) :]}"
            self._lines[i] = code + tail
            return
        code = re.sub(
            rf"(?i)(?:(?<=\s)|^)({re.escape(key)})\s*=\s*(\"[^\"]*\"|\S+)[ \t]*", "", code
        )
        body = code.rstrip(" \t\n")
        code = body + code[len(body) :].lstrip(" \t")
        self._lines[i : i + 1] = [code + tail] if (code + tail).strip() else []

    def _end_of_settings(self) -> int:
        """New settings come before the nodes and partitions."""
        for i, line in enumerate(self._lines):
            if re.match(r"\s*(NodeName|PartitionName|NodeSet)\b", line, re.I):
                return i
        self._end_with_newline()
        return len(self._lines)

    def _end_with_newline(self) -> None:
        if self._lines and not self._lines[-1].endswith("\n"):
            self._lines[-1] += "\n"


def partitions_in(settings: Mapping[str, str]) -> list[str]:
    """Names of the partitions that settings speak of."""
    return sorted(
        {
            key.split(".", 1)[1].rpartition(".")[0]
            for key in settings
            if key.startswith("partition.")
        }
    )


def duration(seconds: int) -> str:
    """Slurm's text of a time, to the second."""
    days, rest = divmod(seconds, 86_400)
    clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days}-{clock}" if days else clock


def minutes_of(text: str) -> int:
    """Whole minutes of a time as slurm.conf takes it (minutes, M:S, H:M:S, D-H, D-H:M, D-H:M:S);
    0: no limit."""
    if not text or text.upper() in ("UNLIMITED", "INFINITE"):
        return 0
    days, dash, clock = text.rpartition("-")
    parts = [int(part) for part in clock.split(":")]
    if dash:
        hours, minutes, _ = (*parts, 0, 0)[:3]
        return int(days) * 1440 + hours * 60 + minutes
    return parts[0] * 60 + parts[1] if len(parts) == 3 else parts[0]


def _per_gpu(shown: str) -> list[str]:
    """Defaults per GPU, which Slurm shows together: ``DefCpuPerGPU=8,DefMemPerGPU=59000``."""
    return [one for one in _shown(shown).split(",") if one]


def _shown(value: str) -> str:
    unit = _UNIT.match(value)
    return unit[1] if unit else ("" if value in _UNSET else value)


def _logical(text: str) -> list[str]:
    lines: list[str] = []
    for line in text.splitlines(keepends=True):
        if lines and lines[-1].endswith("\\\n"):
            lines[-1] += line
        else:
            lines.append(line)
    return lines


def _code(line: str) -> str:
    """The line without its comment; a blank before the comment belongs to the comment."""
    body = line.split("#", 1)[0]
    return body if len(body) == len(line) else body.rstrip(" \t")


def _name_of(line: str, kind: str) -> str | None:
    found = re.match(rf"\s*{kind}\s*=\s*(\S+)", _code(line), re.I)
    return found[1] if found else None


@cache
def _token(key: str) -> re.Pattern[str]:
    return re.compile(rf"(?i)(?<!\S)({re.escape(key)})\s*=\s*(\"[^\"]*\"|[^\s\"]\S*)")
