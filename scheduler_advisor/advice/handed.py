"""The exact lines of a replayed change, in the words of each scheduler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scheduler_advisor.engine.policy import Policy
    from scheduler_advisor.handover.checkpoints import Interval
    from scheduler_advisor.handover.snippet import Target
    from scheduler_advisor.search.catalogue import Change


def handed_over(
    changes: Sequence[Change], target: Target, today: Policy, rows: Sequence[Interval] = ()
) -> dict[str, Any]:
    """Snippets of all the changes, by scheduler. ``today``: what they start from; ``rows``:
    intervals between checkpoints."""
    from scheduler_advisor.handover.handover import snippets

    return {
        scheduler: [snippet.as_json() for snippet in made]
        for scheduler, made in snippets(changes, target, today, rows).items()
    }


def commands_of(handover: Mapping[str, Any]) -> dict[str, str]:
    """The Slurm ones stand in the report; the others in its JSON."""
    made = handover.get("slurm", [])
    if not made:
        return {}
    texts = [text for each in made for text in each["files"].values() if text]
    return {
        "apply": "".join(texts) + "\n".join(dict.fromkeys(each["apply"] for each in made)),
        "verify": "\n".join(each["verify"] for each in made),
        "rollback": "\n".join(dict.fromkeys(each["rollback"] for each in made)),
    }
