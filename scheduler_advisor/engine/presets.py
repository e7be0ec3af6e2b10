"""The schedulers that people run, as compositions of parts: docs/policies.md says what each part
does, and what of each scheduler is not modelled. Quotas and weights come from the policy file."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler_advisor.engine.live.settings import (
    Eligible,
    Entitlement,
    EvictionPart,
    FairPart,
    MultifactorPart,
    QuotaPart,
    Reach,
    Reclaim,
    Stop,
    Victims,
)
from scheduler_advisor.engine.parts.settings import Defrag, DefragPart, Elastic, ElasticPart
from scheduler_advisor.engine.policy import Backfill, Order, Policy, Preemption

DAY_S = 86_400

# Weights as sites set them: fair share before age. Slurm's own defaults are all 0. Backfill looks
# at 100 jobs every 30 s and reserves whole nodes for each that it cannot start.
SLURM = Policy(
    order=Order.MULTIFACTOR,
    backfill=Backfill.EASY,
    backfill_depth=100,
    backfill_whole_nodes=True,
    backfill_interval_s=30,
    quota=QuotaPart(by="account/user"),
    fair=FairPart(half_life_s=7 * DAY_S, period_s=300),
    multifactor=MultifactorPart(
        age=1_000, fairshare=10_000, partition=1_000, qos=2_000, max_age_s=7 * DAY_S
    ),
)
# Gangs or nothing; the queue with the smallest dominant share first; what exceeds a queue's
# weighted share is reclaimed; priorities count within a queue.
VOLCANO = Policy(
    order=Order.DRF,
    backfill=Backfill.GREEDY,
    preemption=Preemption.PRIORITY,
    quota=QuotaPart(reclaim=Reclaim.LOOSE, reclaim_to=Entitlement.TWO_STEP),
    eviction=EvictionPart(reach=Reach.QUEUE),
)
# The queue that uses least of its guarantee first; guarantees come back by preemption, which asks
# and kills 15 s later, and leaves every queue its guarantee.
YARN_CAPACITY = Policy(
    order=Order.FAIR_SHARE,
    backfill=Backfill.GREEDY,
    quota=QuotaPart(reclaim=Reclaim.STRICT),
    fair=FairPart(entitlement=Entitlement.GUARANTEE),
    eviction=EvictionPart(victims=Victims.YOUNGEST, eligible=Eligible.ALL, grace_s=15),
)
# Priority, then time; queues of a cohort borrow from each other; a nominal quota is reclaimed
# from whoever borrows; within a queue the lower priority yields. Pods have 30 s to end.
KUEUE = Policy(
    order=Order.PRIORITY,
    backfill=Backfill.GREEDY,
    preemption=Preemption.PRIORITY,
    quota=QuotaPart(reclaim=Reclaim.LOOSE),
    eviction=EvictionPart(reach=Reach.QUEUE, eligible=Eligible.ALL, grace_s=30),
)
# Deserved quota first, then what is left by weight among those who still ask; whoever is above
# that fair share yields down to it. Before anybody is stopped, running preemptible jobs are moved
# together if that makes room (consolidation, on by default, at most 16 for one job).
KAI = Policy(
    order=Order.FAIR_SHARE,
    backfill=Backfill.GREEDY,
    preemption=Preemption.PRIORITY,
    quota=QuotaPart(reclaim=Reclaim.STRICT, reclaim_to=Entitlement.TWO_STEP),
    fair=FairPart(entitlement=Entitlement.TWO_STEP),
    eviction=EvictionPart(reach=Reach.QUEUE),
    defrag=DefragPart(kind=Defrag.PENDING, moves=16, every_s=0),
)
# Every job can be stopped at any moment by a higher tier and loses nothing but the time to write
# and read a checkpoint of its GPUs' memory over shared storage. Elastic jobs give GPUs back before
# any job is stopped, and grow into idle ones.
SINGULARITY = Policy(
    order=Order.PRIORITY,
    backfill=Backfill.GREEDY,
    preemption=Preemption.PRIORITY,
    eviction=EvictionPart(
        eligible=Eligible.ALL, mode=Stop.CHECKPOINT, gib_per_gpu=40, storage_gib_s=100
    ),
    elastic=ElasticPart(kind=Elastic.RESIZE),
)
SCHEDULERS: Mapping[str, Policy] = {
    "slurm": SLURM,
    "volcano": VOLCANO,
    "yarn-capacity": YARN_CAPACITY,
    "kueue": KUEUE,
    "kai": KAI,
    "singularity": SINGULARITY,
}
