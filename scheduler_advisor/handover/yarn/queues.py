"""Queues with guarantees and maxima as capacities of the capacity scheduler."""

from __future__ import annotations

from scheduler_advisor.handover.errors import HandoverError
from scheduler_advisor.handover.queues import Queue, queues_of
from scheduler_advisor.handover.yarn.draft import DOMINANT, HEAD, YarnDraft


def quota(draft: YarnDraft) -> None:
    if not draft.take("quota"):
        return
    before, after = queues_of(draft.change.before), queues_of(draft.change.after)
    if after and not draft.site.gpus:
        raise HandoverError("YARN: shares of queues need the number of GPUs: import the nodes")
    _drop(draft, before, after)
    for parent in sorted({"", *(queue.parent for queue in after.values())}):
        names = sorted(name for name, queue in after.items() if queue.parent == parent)
        path = _path(parent, after) if parent else "root"
        if names:
            draft.capacity.set(f"{HEAD}.{path}.queues", ",".join(names))
            _shares(draft, after, names, parent)
    if before and not after:
        draft.capacity.set(f"{HEAD}.root.queues", "default")
        draft.capacity.set(f"{HEAD}.root.default.capacity", "100")
    draft.capacity.set(f"{HEAD}.resource-calculator", DOMINANT)
    if draft.text("quota.reclaim", "none") != "none":
        draft.monitor()
        draft.remark(
            "quota.reclaim", "containers above a queue's capacity are killed, newest first"
        )
    draft.always("quota.strict", False, "applications that fit pass one that does not")
    draft.always("quota.reclaim_to", "guarantee", "YARN reclaims the capacity")


def _drop(draft: YarnDraft, before: dict[str, Queue], after: dict[str, Queue]) -> None:
    for name in before.keys() - after.keys():
        head = f"{HEAD}.{_path(name, before)}."
        for text in [one for one in draft.capacity.names() if one.startswith(head)]:
            draft.capacity.set(text, None)


def _shares(draft: YarnDraft, queues: dict[str, Queue], names: list[str], parent: str) -> None:
    total = queues[parent].guarantee if parent else draft.site.gpus
    given = sum(queues[name].guarantee for name in names)
    # Capacities of brothers must add up to 100: what no one is guaranteed goes by weight.
    spare, weights = max(total - given, 0), sum(queues[name].weight for name in names) or 1
    shares = [queues[name].guarantee + spare * queues[name].weight / weights for name in names]
    whole = sum(shares) or 1
    texts = _hundred([100 * share / whole for share in shares])
    for name, text in zip(names, texts, strict=True):
        queue, path = queues[name], f"{HEAD}.{_path(name, queues)}"
        draft.capacity.set(f"{path}.capacity", text)
        most = 100.0 if queue.maximum is None else min(100.0, 100 * queue.maximum / (total or 1))
        draft.capacity.set(f"{path}.maximum-capacity", f"{max(most, float(text)):.2f}")
        if queue.lend is not None:
            draft.refuse(f"quota.queues.{name}.lend", "unused capacity is lent whole")
    if spare:
        draft.remark(
            "quota.queues",
            f"{spare} GPUs that no queue of {parent or 'root'} is"
            " guaranteed are added to the capacities by weight: they must sum to 100",
        )


def _hundred(shares: list[float]) -> list[str]:
    """Two decimals that add up to 100.00 exactly; the largest takes the rounding."""
    cents = [round(share * 100) for share in shares]
    cents[cents.index(max(cents))] += 10_000 - sum(cents)
    return [f"{one // 100}.{one % 100:02}" for one in cents]


def _path(name: str, queues: dict[str, Queue]) -> str:
    parent = queues[name].parent if name in queues else ""
    return f"{_path(parent, queues) if parent else 'root'}.{name}"


def leaves(draft: YarnDraft) -> list[str]:
    queues = queues_of(draft.change.after)
    parents = {queue.parent for queue in queues.values()}
    if queues:
        return [_path(name, queues) for name in queues if name not in parents]
    text = draft.capacity.get(f"{HEAD}.root.queues") or "default"
    return [f"root.{name.strip()}" for name in text.split(",")]
