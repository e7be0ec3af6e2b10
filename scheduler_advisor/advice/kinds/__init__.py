"""Every kind of advice from facts alone, in the order in which it is looked at."""

from scheduler_advisor.advice.kinds import (
    checkpoint_interval,
    checkpoint_unknown,
    complementary_hours,
    data_quality,
    drained_nodes,
    fragmentation,
    gang_half,
    gang_hang,
    gang_off,
    gang_wait,
    held_idle,
    idle_after_use,
    input_bound,
    lost_work,
    low_efficiency,
    night_idle,
    over_request,
    quota_unused,
    requeue_loops,
    reserved_unused,
    share_gpu,
    unattributed,
    uneven_runs,
    whole_node_memory,
)

KINDS = (
    data_quality, held_idle, idle_after_use, low_efficiency, input_bound, over_request,
    whole_node_memory, share_gpu, complementary_hours, fragmentation, gang_wait, gang_hang,
    gang_half, gang_off, uneven_runs, drained_nodes, requeue_loops, reserved_unused, quota_unused,
    night_idle, unattributed, lost_work, checkpoint_interval, checkpoint_unknown,
)  # fmt: skip
