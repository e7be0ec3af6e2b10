"""Reading and writing the keys quota.*, fairshare.*, multifactor.*, preemption.*, ordering.*."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from scheduler_advisor.engine.errors import PolicyError
from scheduler_advisor.engine.key_value import read_value, whole
from scheduler_advisor.engine.live.settings import (
    AT_ONCE,
    NO_QUOTA,
    PLAIN_ORDER,
    QUEUES,
    TABLES,
    UNWEIGHTED,
    WEIGHTED,
    MultifactorPart,
    QueueRule,
    QuotaPart,
)

UNBOUND = "none"  # of a queue's maximum, and of what it lends

# Part of a key before the dot -> the field of Policy that holds it.
LIVE_PARTS: Mapping[str, str] = {
    "quota": "quota",
    "fairshare": "fair",
    "multifactor": "multifactor",
    "preemption": "eviction",
    "ordering": "ordering",
}


def live_keys() -> list[str]:
    """Every key of these parts, as on the command line."""
    keys = []
    for name, part in (
        ("quota", NO_QUOTA),
        ("fairshare", WEIGHTED),
        ("multifactor", UNWEIGHTED),
        ("preemption", AT_ONCE),
        ("ordering", PLAIN_ORDER),
    ):
        for item in fields(part):
            if item.name == QUEUES:
                keys += [f"quota.queues.NAME.{one.name}" for one in fields(QueueRule)[1:]]
            elif item.name in TABLES:
                keys.append(f"{name}.{item.name}.NAME")
            else:
                keys.append(f"{name}.{item.name}")
    return sorted(keys)


def live_changed(part: Any, key: str, value: object) -> Any:
    """The part with one key of the command line replaced."""
    rest = key.partition(".")[2]
    head, _, tail = rest.partition(".")
    if head == QUEUES and tail and isinstance(part, QuotaPart):
        return replace(part, queues=_queue_changed(part.queues, key, tail, value))
    if head in TABLES and tail and isinstance(part, MultifactorPart):
        pairs = dict(getattr(part, head)) | {tail: whole(key, value)}
        changes: dict[str, Any] = {head: tuple(sorted(pairs.items()))}
        return replace(part, **changes)
    known = {item.name for item in fields(part)} - {QUEUES, *TABLES}
    if rest not in known:
        raise PolicyError(f"policy: no key {key}; known: {', '.join(live_keys())}")
    return replace(part, **{rest: read_value(key, getattr(part, rest), str(value))})


def _queue_changed(
    queues: tuple[QueueRule, ...], key: str, tail: str, value: object
) -> tuple[QueueRule, ...]:
    name, _, column = tail.rpartition(".")
    if not name or column not in {item.name for item in fields(QueueRule)[1:]}:
        raise PolicyError(f"policy: no key {key}; write quota.queues.NAME.guarantee")
    rules = {queue.name: queue for queue in queues}
    old = rules.get(name, QueueRule(name))
    new: object
    if column in ("maximum", "lend") and str(value) == UNBOUND:
        new = None
    else:
        new = str(value) if column == "parent" else whole(key, value)
    rules[name] = replace(old, **{column: new})  # type: ignore[arg-type]
    return tuple(rules[one] for one in sorted(rules))


def live_toml(policy: Any) -> list[str]:
    """Lines that read back to these parts of the policy, of what is not the default; the lines of
    preemption come first, since their table is open already."""
    lines = _lines(policy.eviction)
    for table, name in LIVE_PARTS.items():
        part = getattr(policy, name)
        if table == "preemption" or part == type(part)():
            continue
        lines += ["", f"[{table}]", *_lines(part)]
        if isinstance(part, QuotaPart):
            for queue in part.queues:
                lines += ["", f'[quota.queues."{queue.name}"]', *_lines(queue)]
        if isinstance(part, MultifactorPart):
            for head in TABLES:
                if pairs := getattr(part, head):
                    lines += ["", f"[multifactor.{head}]"]
                    lines += [f'"{one}" = {value}' for one, value in pairs]
    return lines


def _lines(part: Any) -> list[str]:
    lines = []
    for item in fields(part):
        value = getattr(part, item.name)
        if item.name in ("name", QUEUES, *TABLES) or value == item.default:
            continue
        text = str(value).lower() if isinstance(value, bool) else str(value)
        lines.append(
            f'{item.name} = "{text}"' if isinstance(value, str) else f"{item.name} = {text}"
        )
    # A queue of defaults still has to be named.
    return lines or (["guarantee = 0"] if isinstance(part, QueueRule) else [])
