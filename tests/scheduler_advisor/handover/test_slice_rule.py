"""The rules that give small jobs a slice: Slurm's in a real Lua, Kubernetes' by its fields."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
import yaml

from scheduler_advisor.handover.kubernetes.slice_policy import name_pattern, slice_policy
from scheduler_advisor.handover.slice_rule import slice_for, slice_rule

SLICE = slice_for("A100", 40 * 1024, 9000)
NAMES = ["detect-12", "layout", 'odd "name" \\ 3']
GPU = "nvidia.com/gpu"

# What Slurm gives a job_submit script, and one line per job: what it asks for afterwards.
HARNESS = """
slurm = { SUCCESS = 0, log_user = function(...) told = string.format(...) end }
dofile(arg[1])
for name, tres in string.gmatch(io.read("a"), "([^\\t\\n]*)\\t([^\\n]*)\\n") do
  told = nil
  local job = { name = name, tres_per_node = tres ~= "" and tres or nil }
  assert(slurm_job_submit(job, {}, 1000) == slurm.SUCCESS)
  print(tostring(job.tres_per_node) .. "\\t" .. tostring(told ~= nil))
end
local job = { tres_per_node = "gres/gpu:1" }
assert(slurm_job_modify(job, {}, {}, 1000) == slurm.SUCCESS)
assert(job.tres_per_node == "gres/gpu:1")
"""


@pytest.fixture
def admitted(system, tmp_path):
    """What jobs of (name, tres) ask for once a real Lua has run the rule, and who was told."""
    system.require("lua5.4", binaries=("lua5.4",))

    def run(rule, jobs):
        (tmp_path / "job_submit.lua").write_text(rule)
        (tmp_path / "harness.lua").write_text(HARNESS)
        done = subprocess.run(
            ["lua5.4", "harness.lua", "job_submit.lua"], cwd=tmp_path, text=True, check=True,
            capture_output=True, input="".join(f"{name}\t{tres}\n" for name, tres in jobs),
        )  # fmt: skip
        lines = [line.split("\t") for line in done.stdout.splitlines()]
        return [(tres, told == "true") for tres, told in lines]

    return run


@pytest.mark.real
def test_a_real_lua_gives_small_jobs_the_slice_and_leaves_all_others(admitted):
    cut = ("gres/gpu:1g.10gb:1", True)
    jobs = {
        ("detect-77", "gres/gpu:1"): cut,  # tonight's number is another
        ("layout", "gres:gpu:1"): cut,  # as older releases write it
        ('odd "name" \\ 8', "gres/gpu:1"): cut,
        ("detect-77", "gres/gpu:2"): ("gres/gpu:2", False),
        ("detect-77", "gres/gpu:a100:1"): ("gres/gpu:a100:1", False),  # it named a model
        ("detect-77", "gres/gpu:1,gres/shard:1"): ("gres/gpu:1,gres/shard:1", False),
        ("detect-77", ""): ("nil", False),
        ("redetect-77", "gres/gpu:1"): ("gres/gpu:1", False),
        ("train", "gres/gpu:1"): ("gres/gpu:1", False),
        ("", "gres/gpu:1"): ("gres/gpu:1", False),
    }
    assert admitted(slice_rule(NAMES, SLICE), jobs) == list(jobs.values())


@pytest.fixture
def policy():
    """The policy of Kubernetes and its binding."""
    return list(yaml.safe_load_all(slice_policy(NAMES, SLICE)))


def test_the_policy_and_its_binding_hold_only_fields_that_kubernetes_has(policy, faults):
    made, bound = policy
    assert [faults("kubernetes", body) for body in policy] == [[], []]
    assert bound["spec"]["policyName"] == made["metadata"]["name"]
    assert faults("kubernetes", made | {"status": {}}) != []
    [rule] = made["spec"]["matchConstraints"]["resourceRules"]
    # Jobs and not their pods: Kueue counts what a job asks for.
    assert (rule["apiGroups"], rule["resources"]) == (["batch"], ["jobs"])


@pytest.mark.parametrize(
    ("name", "small"),
    [
        ("detect-12", True), ("detect-8", True), ("detect-8-x7k2p", True), ("detect-9-", True),
        ("layout-abcde", True), ("odd-name-4", True),
        ("redetect-8", False), ("detect-x", False), ("layouts", False), ("layout-ab", False),
        ("", False),
    ],
)  # fmt: skip
def test_jobs_are_known_by_their_names_whatever_their_numbers(policy, name, small):
    pattern = name_pattern(NAMES)
    assert bool(re.search(pattern, name)) is small
    conditions = {one["name"]: one["expression"] for one in policy[0]["spec"]["matchConditions"]}
    assert f".matches('{pattern}')" in conditions["small"]
    assert "\\" not in pattern  # a string of CEL would read a backslash


def test_a_point_in_a_name_is_a_point():
    assert re.search(name_pattern(["v1.2"]), "v3.14")
    assert not re.search(name_pattern(["v1.2"]), "v3x14")


@pytest.mark.parametrize("requested", [False, True])
def test_the_patch_takes_the_gpu_out_and_puts_the_slice_in(policy, requested):
    [mutation] = policy[0]["spec"]["mutations"]
    always, asked = mutation["jsonPatch"]["expression"].split("] + (")
    container = {"resources": {"limits": {GPU: "1", "memory": "8Gi"}}}
    steps = operations(always)
    if requested:
        container["resources"]["requests"] = {GPU: "1", "cpu": "4"}
        steps += operations(asked)
    job = {"spec": {"template": {"spec": {"containers": [container]}}}}
    for step in steps:
        apply(job, step)
    assert container["resources"]["limits"] == {"nvidia.com/mig-1g.10gb": "1", "memory": "8Gi"}
    if requested:
        assert container["resources"]["requests"] == {"cpu": "4"}


def operations(expression):
    """The JSON patch that a list of CEL's `JSONPatch` makes."""
    form = r'JSONPatch\{op: "(\w+)", path: "([^"]+)" \+ jsonpatch\.escapeKey\(\'([^\']+)\'\)' \
           r'(?:, value: ("[^"]*"))?\}'  # fmt: skip
    found = re.findall(form, expression)
    assert len(found) == expression.count("JSONPatch{")
    return [
        (op, path + key.replace("~", "~0").replace("/", "~1"), value)
        for op, path, key, value in found
    ]


def apply(body, step):
    """RFC 6902 on maps and lists: a path that is not there is an error."""
    op, path, value = step
    *way, last = (each.replace("~1", "/").replace("~0", "~") for each in path.split("/")[1:])
    at = body
    for key in way:
        at = at[int(key)] if isinstance(at, list) else at[key]
    if op == "remove":
        del at[last]
    else:
        at[last] = json.loads(value)
