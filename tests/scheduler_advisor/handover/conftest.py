"""A site of four nodes, policies by key, and schemas of what is handed over."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from scheduler_advisor.engine.policy import Policy
from scheduler_advisor.handover.make import for_change
from scheduler_advisor.handover.site import Beside, Node, Site
from scheduler_advisor.handover.steps import Edit, Scheduler

NODES = tuple(
    Node(f"gpu{n}", 8, "A100-80GB", 64, 512_000, f"leaf{(n + 1) // 2}", "spine1")
    for n in range(1, 5)
)
SCHEMAS = Path(__file__).with_name("schemas")


@pytest.fixture
def site():
    """``site(files={...}, settings={...})``: 32 GPUs of four nodes under two leaves."""

    def make(**facts):
        return Site(NODES, **facts)

    return make


@pytest.fixture
def policy():
    """``policy({"backfill": "easy"})``."""
    return lambda *keys: Policy().with_values({k: v for each in keys for k, v in each.items()})


@pytest.fixture
def hand(site, policy):
    """``hand("slurm", {...before}, {...after}, files=..., mig=...)``."""

    def make(scheduler, before, after, files=None, settings=None, mig_today=None, **beside):
        facts = site(files=files or {}, settings=settings or {}, mig=mig_today or {})
        return for_change(
            Scheduler(scheduler), policy(before), policy(before, after), facts, Beside(**beside)
        )

    return make


@pytest.fixture
def objects():
    """The objects that stand in a hand-over's files after it, by kind and name."""

    def read(handover):
        bodies = [yaml.safe_load(edit.after) for edit in handover.edits if edit.after]
        return {(body["kind"], body.get("metadata", {}).get("name", "")): body for body in bodies}

    return read


@pytest.fixture
def faults():
    """``faults("kueue", body)``: what the schema says against an object; empty: it is valid."""

    def check(scheduler, body, kind=None):
        found = _validator(scheduler, kind or body.get("kind", ""))
        return [error.message for error in found.iter_errors(body)]

    return check


@cache
def _validator(scheduler, kind):
    document = yaml.safe_load((SCHEMAS / f"{scheduler}.yaml").read_text())
    schema = document
    if "$defs" in document:
        schema = document[kind] | {"$defs": document["$defs"]}
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


@pytest.fixture(scope="session")
def patched_once():
    """Apply unified diffs to files without any code of ours: as `patch` reads them."""

    def apply(files, steps):
        found = dict(files)
        for step in steps:
            if isinstance(step, Edit):
                _patch(found, step.diff())
        return found

    return apply


def _patch(files, diff):
    lines = diff.splitlines(keepends=True)
    old, new = (line.split()[1] for line in lines[:2])
    text = [] if old == "/dev/null" else files.pop(old).splitlines(keepends=True)
    result, at = [], 0
    for line in lines[2:]:
        if line.startswith("@@"):
            since, _, count = line.split()[1][1:].partition(",")
            # An empty side counts from the line before it.
            start = int(since) - (0 if count == "0" else 1)
            result += text[at:start]
            at = start
        elif line[0] in " -":
            assert text[at] == line[1:], f"{old}: {text[at]!r} is not {line[1:]!r}"
            result += [line[1:]] * (line[0] == " ")
            at += 1
        else:
            result.append(line[1:])
    result += text[at:]
    if new != "/dev/null":
        files[new] = "".join(result)
