"""Which advice of a rule and which replayed change are one and the same act.

Both may stand in a report: the rule says what the fault takes away, the replay what the act brings.
They are never added.
"""

from __future__ import annotations

from collections.abc import Sequence

from scheduler_advisor.advice.draft import Draft

# Kinds that win capacity for jobs that wait, by the change of the catalogue that is the same act.
FOR_WAITING = {"fragmentation": "pack"}
# Kinds that make capacity usable, asked for or not: a replay says how much of it somebody asked.
USABLE = {"whole_node_memory": ("cap_memory",), "over_request": ("cap_cpu", "cap_memory")}
# Kinds about where work lies, and the replayed changes that decide it.
ABOUT_PLACES = ("uneven_runs",)
PLACES = {"topology", "topology_required", "pack", "consolidate"}


def moves_work(draft: Draft) -> bool:
    """Whether it is a replayed change of where work is put."""
    return draft.replay is not None and bool(PLACES & set(draft.subject.split(" + ")))


def same_act(rule: Draft, replayed: Draft) -> bool:
    """Whether the replayed change contains what the rule advises."""
    if rule.replay is not None or replayed.replay is None or rule.cluster != replayed.cluster:
        return False
    return bool(set(USABLE.get(rule.kind, ())) & set(replayed.subject.split(" + ")))


def counted_once(drafts: Sequence[Draft]) -> list[Draft]:
    """Without replayed changes that are nothing but what rules here advise as well: what somebody
    waited for is a part of what becomes usable."""
    return [draft for draft in drafts if not _covered(draft, drafts)]


def _covered(draft: Draft, drafts: Sequence[Draft]) -> bool:
    if draft.replay is None:
        return False
    acts = {name for rule in drafts if same_act(rule, draft) for name in USABLE[rule.kind]}
    return set(draft.subject.split(" + ")) <= acts
