"""Changes of the limits and guarantees of teams, from those in force and how they are used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from scheduler_advisor.caps import Caps
from scheduler_advisor.engine.limits import Limit, Scope
from scheduler_advisor.engine.live.make_tree import paths_up
from scheduler_advisor.engine.live.settings import QueueRule, QuotaPart
from scheduler_advisor.engine.live.settings_text import UNBOUND
from scheduler_advisor.engine.policy import Policy
from scheduler_advisor.past import Past
from scheduler_advisor.quota_use import QueueUse, uses
from scheduler_advisor.search.catalogue import FAIRNESS, LIMITS, Change, Part

WIDER = 1.5  # of each limit: room for a rush, and still a bound on what one team can fill
LENDS = 0.75  # a team that ever holds more of its limit needs it
LENT = 0.5  # of what is unused, where nothing takes lent GPUs back
DAY_S = 86_400
LEAST_JOBS = 20  # of a team: fewer are no evidence of what it needs
MOVED = (1.0, 0.5)  # of what could move: all of it, and half
TEAMS = 40  # the most that ask: a cluster with a thousand projects is not settled one by one


def quota_changes(
    past: Past, policy: Policy, *, resumes: bool, measured: bool = True
) -> list[Change]:
    """What can be tried with limits here. ``resumes``: some work may be stopped, so that lent GPUs
    can be taken back. ``measured``: also what depends on how the limits are used, which takes about
    a second for a hundred thousand jobs."""
    limited = [rule for rule in policy.quota.queues if rule.maximum is not None]
    measured = measured and past.wait_s is not None
    found = [*_users(past)] if past.wait_s is not None else []
    if limited or any(_shared(limit) for limit in past.cluster.limits):
        used = _used(past, policy) if measured else {}
        lenders = _lenders(limited, used)
        found += _limits(past, limited, lenders)
        found += _lending(past, limited, lenders, resumes=resumes)
        found += _moves(policy, limited, used)
    elif measured and len(set(past.jobs.account.names) - {""}) > 1:
        found += _guarantees(past, policy, resumes=resumes)
    return found


def _used(past: Past, policy: Policy) -> dict[str, QueueUse]:
    caps = Caps(past.jobs, past.cluster, policy.quota)
    return {use.name: use for use in uses(past, policy.quota, caps)}


def _lenders(limited: Sequence[QueueRule], used: Mapping[str, QueueUse]) -> tuple[str, ...]:
    """Teams that leave a quarter of their limit unused and more; without a measure all."""
    found = [
        rule.name
        for rule in limited
        if rule.name in used and used[rule.name].peak <= LENDS * (rule.maximum or 0)
    ]
    return tuple(found) or tuple(rule.name for rule in limited)


def _shared(limit: Limit) -> bool:
    """Whether it caps what several people hold together."""
    return limit.max_gpus is not None and limit.scope in (Scope.ALL, Scope.ACCOUNT)


def _limits(past: Past, limited: Sequence[QueueRule], lenders: tuple[str, ...]) -> Iterator[Change]:
    total = past.cluster.total_gpus
    teams = tuple(rule.name for rule in limited)
    kept = tuple(limit for limit in past.cluster.limits if not _shared(limit))
    changed = None if kept == past.cluster.limits else kept
    off = {f"quota.queues.{name}.maximum": UNBOUND for name in teams}
    yield Change("limits_off", Part.QUOTA, off, risk=3, prompted_by=(LIMITS,), limits=changed,
                 owners=lenders)  # fmt: skip
    wider = {
        f"quota.queues.{rule.name}.maximum": min(total, round((rule.maximum or 0) * WIDER + 0.49))
        for rule in limited
    }
    more = tuple(
        replace(limit, max_gpus=min(total, round((limit.max_gpus or 0) * WIDER + 0.49)))
        if _shared(limit) else limit
        for limit in past.cluster.limits
    )  # fmt: skip
    yield Change("limits_wider", Part.QUOTA, wider, risk=2, prompted_by=(LIMITS,), owners=lenders,
                 limits=None if more == past.cluster.limits else more)  # fmt: skip


def _lending(
    past: Past, limited: Sequence[QueueRule], lenders: tuple[str, ...], *, resumes: bool
) -> Iterator[Change]:
    """Limits of accounts become guarantees, or shares; those of single users stay."""
    teams = [rule for rule in limited if "/" not in rule.name]
    if len(teams) < 2:
        return
    off: dict[str, object] = {f"quota.queues.{rule.name}.maximum": UNBOUND for rule in teams}
    own = _guaranteed(teams, past.cluster.total_gpus)
    shares = {f"quota.queues.{rule.name}.weight": max(1, rule.maximum or 0) for rule in teams}
    yield Change("limits_to_shares", Part.QUOTA, off | shares | {"order": "fair-share",
                 "fairshare.half_life_s": DAY_S}, risk=2, effort="medium", prompted_by=(LIMITS,),
                 owners=lenders)  # fmt: skip
    guarantees = {f"quota.queues.{name}.guarantee": gpus for name, gpus in own.items()}
    lent = {f"quota.queues.{name}.lend": round(gpus * LENT) for name, gpus in own.items()}
    yield Change("borrow_half", Part.QUOTA, off | guarantees | lent, risk=2, effort="medium",
                 prompted_by=(LIMITS,), owners=lenders)  # fmt: skip
    if resumes:
        yield Change("borrow_reclaim", Part.QUOTA, off | guarantees | {"quota.reclaim": "strict"},
                     risk=3, effort="medium", disrupts=True, prompted_by=(LIMITS,),
                     owners=lenders)  # fmt: skip


def _guaranteed(teams: Sequence[QueueRule], total: int) -> dict[str, int]:
    """What each team is guaranteed: its limit, cut in proportion where all of them together exceed
    the cluster. A queue above others has theirs."""
    parents = {rule.parent for rule in teams}
    leaves = [rule for rule in teams if rule.name not in parents]
    asked = sum(rule.maximum or 0 for rule in leaves)
    share = min(1.0, total / asked) if asked else 1.0
    return {rule.name: int((rule.maximum or 0) * share) for rule in leaves}


def _moves(
    policy: Policy, limited: Sequence[QueueRule], used: Mapping[str, QueueUse]
) -> Iterator[Change]:
    """From the team that leaves most of its limit unused to the one that waits most for its own."""
    if not used or len(limited) < 2:
        return
    maximum = {rule.name: rule.maximum or 0 for rule in limited}
    taker = max(maximum, key=lambda name: used[name].waiting if name in used else 0.0)
    if taker not in used or used[taker].waiting <= 0:
        return
    spare = {
        name: int(gpus - (used[name].peak if name in used else 0.0))
        for name, gpus in maximum.items()
        if not _related(policy.quota, name, taker)
    }
    giver = max(spare, key=lambda name: spare[name], default="")
    if not giver or spare[giver] < 1:
        return
    sizes = {_round(spare[giver] * share, maximum[giver]) for share in MOVED}
    for gpus in sorted(sizes - {0}, reverse=True):
        keys = {f"quota.queues.{giver}.maximum": maximum[giver] - gpus,
                f"quota.queues.{taker}.maximum": maximum[taker] + gpus}  # fmt: skip
        yield Change(f"limit_move:{gpus}:{giver}:{taker}", Part.QUOTA, keys, risk=2,
                     prompted_by=(LIMITS,), owners=(giver,))  # fmt: skip


def _round(gpus: float, limit: int) -> int:
    """Down to eighths of the limit: the same advice a week later keeps its name."""
    step = max(1, limit // 8)
    return int(gpus // step) * step


def _related(quota: QuotaPart, one: str, other: str) -> bool:
    of_one, of_other = paths_up((one, other), quota)
    return one in of_other or other in of_one


def _users(past: Past) -> Iterator[Change]:
    """Limits of single users, raised to a share of the cluster by who is there, or lifted."""
    own = [limit for limit in past.cluster.limits
           if limit.scope is Scope.USER and limit.max_gpus is not None]  # fmt: skip
    if not own:
        return
    share = int(past.cluster.total_gpus / max(_users_at_once(past), 1.0))
    raised = tuple(
        replace(limit, max_gpus=max(limit.max_gpus or 0, share)) if limit in own else limit
        for limit in past.cluster.limits
    )
    if raised != past.cluster.limits:
        yield Change(f"user_limits_share:{share}", Part.QUOTA, limits=raised, risk=2,
                     prompted_by=(LIMITS,))  # fmt: skip
    lifted = tuple(
        replace(limit, max_gpus=None) if limit in own else limit for limit in past.cluster.limits
    )
    kept = tuple(each for each in lifted if (each.max_gpus, each.max_jobs) != (None, None))
    yield Change("user_limits_off", Part.QUOTA, limits=kept, risk=3, prompted_by=(LIMITS,))


def _users_at_once(past: Past) -> float:
    """Users with a job that runs or waits, the most but for one instant in twenty."""
    jobs, counts = past.jobs, []
    for at in np.linspace(past.since, past.until, 102)[1:-1]:
        there = (jobs.eligible <= at) & (at < past.real_end) & (jobs.gpus > 0)
        counts.append(len(np.unique(jobs.user.codes[there])))
    return float(np.quantile(counts, 0.95))


def _guarantees(past: Past, policy: Policy, *, resumes: bool) -> Iterator[Change]:
    """Guarantees by share, or a cap on the team that takes most, where one starves the others."""
    if policy.quota.queues:
        return  # a tree of shares that guarantees of our own would cut across
    quota = replace(policy.quota, by="account")
    counts = np.bincount(past.jobs.account.codes[past.judged],
                         minlength=len(past.jobs.account.names))  # fmt: skip
    busy = {name for name, count in zip(past.jobs.account.names, counts.tolist(), strict=True)
            if name and count >= LEAST_JOBS}  # fmt: skip
    teams = [use for use in uses(past, quota, Caps(past.jobs, past.cluster, quota))
             if use.name in busy]  # fmt: skip
    teams = sorted(teams, key=lambda use: -use.asked)[:TEAMS]
    if len(teams) < 2:
        return
    own = shares_of(teams, past.cluster.total_gpus)
    keys: dict[str, object] = {"quota.by": "account"}
    keys |= {f"quota.queues.{name}.guarantee": gpus for name, gpus in own.items()}
    if resumes:
        yield Change("guarantee_reclaim", Part.QUOTA, keys | {"quota.reclaim": "strict"}, risk=3,
                     effort="high", disrupts=True, prompted_by=(FAIRNESS,))  # fmt: skip
    lent = {f"quota.queues.{name}.lend": round(gpus * LENT) for name, gpus in own.items()}
    yield Change("guarantee_kept", Part.QUOTA, keys | lent, risk=2, effort="high",
                 prompted_by=(FAIRNESS,))  # fmt: skip
    top = max(teams, key=lambda use: use.peak)
    gpus = round(own[top.name] * WIDER + 0.49)
    if gpus < past.cluster.total_gpus:
        cap = {"quota.by": "account", f"quota.queues.{top.name}.maximum": gpus}
        yield Change(f"cap_team:{gpus}:{top.name}", Part.QUOTA, cap, risk=2, effort="medium",
                     prompted_by=(FAIRNESS,))  # fmt: skip


def shares_of(teams: Sequence[QueueUse], total: int) -> Mapping[str, int]:
    """Max-min fair shares of the cluster, of what each team asks for at once, in whole GPUs."""
    left, todo, own = float(total), sorted(teams, key=lambda use: use.asked), {}
    for place, use in enumerate(todo):
        own[use.name] = min(use.asked, left / (len(todo) - place))
        left -= own[use.name]
    return {name: max(1, int(gpus)) for name, gpus in own.items()}
