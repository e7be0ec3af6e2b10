"""A hand-over as text for a terminal, from its plain values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_KNOWN = {
    "file": "",
    "stored": "    (lines as the scheduler shows them; yours may stand elsewhere in the file)",
    "assumed": "    (the file is not known: give it with --config; lines as the policy implies)",
}


def told(document: Mapping[str, Any]) -> str:
    """What to do, in the order in which it is done."""
    return "\n".join(_lines(document)) + "\n"


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    edits = [step for step in document["apply"] if "file" in step]
    runs = [step for step in document["apply"] if "run" in step]
    if not document["apply"]:
        yield f"{document['scheduler']}: nothing to change"
    for edit in edits:
        yield f"== {edit['file']}{_KNOWN[edit['known']]}"
        yield edit["diff"].rstrip("\n")
        yield ""
    yield from _part("Try it without effect", document["check"])
    yield from _part("Then run", [_run(step) for step in runs])
    yield from _part("See that it took", document["verify"])
    undo = [_run(step) for step in document["rollback"] if "run" in step]
    back = ["undo the edits above (patch -R)"] if edits else []
    yield from _part("Roll back", back + undo)
    yield from _part(
        f"{document['scheduler']} cannot express",
        [f"{one['key']} = {one['after']}: {one['reason']}" for one in document["cannot"]],
    )
    yield from _part(
        "Done in its own way", [f"{one['key']}: {one['text']}" for one in document["remarks"]]
    )
    if document["modelled_only"]:
        yield from _part("Only the simulation has", [", ".join(document["modelled_only"])])


def _part(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield f"{title}:"
        yield from (f"  {line}" for line in lines)


def _run(step: Mapping[str, Any]) -> str:
    return f"{step['run']}    # on {step['where']}" if step["where"] else str(step["run"])
