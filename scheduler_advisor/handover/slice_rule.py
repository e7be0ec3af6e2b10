"""The admission rule that gives small jobs a slice of a GPU although they ask for a whole one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scheduler_advisor.engine.parts.mig import Profile

ROOM = 0.9  # of a slice's memory: a tenth stays free for contexts and peaks
FILE = "job_submit.lua"


def slice_for(gpu_model: str, total_mib: float, used_mib: float) -> Profile | None:
    """The smallest slice that holds the memory; None where only the whole GPU does, or the model
    has none. The memory of the board tells variants of a model apart."""
    from scheduler_advisor.engine.parts.mig import WHOLE, profiles_of  # loads the compiler

    variants = profiles_of(f"{gpu_model}-{round(total_mib / 1024)}GB")
    fitting = [each for each in variants if each.memory_gb * 1024 * ROOM >= used_mib]
    if not fitting or fitting[0].bandwidth_milli >= WHOLE:
        return None
    return fitting[0]


def slice_rule(names: Iterable[str], profile: Profile) -> str:
    """Slurm's: jobs of these names, digits apart, that ask for one GPU of a node get the slice.

    The nodes' GPUs must be cut (mig-parted) and named in gres.conf (AutoDetect=nvml) before.
    """
    small = ", ".join(f'["{_quoted(name)}"] = true' for name in sorted({*map(_alike, names)}))
    return f"""-- {FILE}, with JobSubmitPlugins=lua in slurm.conf
local small = {{ {small} }}
function slurm_job_submit(job, partitions, uid)
  local name = string.gsub(job.name or "", "%d+", "#")
  if small[name] and string.match(job.tres_per_node or "", "^gres[:/]gpu:1$") then
    job.tres_per_node = "gres/gpu:{profile.name}:1"
    slurm.log_user("a slice of a GPU ({profile.name}) instead of a whole one")
  end
  return slurm.SUCCESS
end
function slurm_job_modify(job, record, partitions, uid)
  return slurm.SUCCESS
end
"""


def _alike(name: str) -> str:
    return re.sub(r"\d+", "#", name)


def _quoted(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"')
