"""Chance that is the same on every machine: a hash of what is decided, not a stream."""

from __future__ import annotations

from scheduler_advisor.engine.jit import leaf


@leaf
def draw(seed: int, job: int, attempt: int, task: int, size: int) -> int:
    """A number below `size`, spread evenly over the decisions (products stay below 2**63)."""
    x = (seed ^ 0x9E3779B9) & 0xFFFFFFFF
    x = ((x ^ (job & 0xFFFFFFFF)) * 1664525 + 1013904223) & 0xFFFFFFFF
    x = ((x ^ attempt) * 1664525 + 1013904223) & 0xFFFFFFFF
    x = ((x ^ task) * 1664525 + 1013904223) & 0xFFFFFFFF
    x = ((x ^ (x >> 16)) * 0x45D9F3B) & 0xFFFFFFFF
    x = ((x ^ (x >> 16)) * 0x45D9F3B) & 0xFFFFFFFF
    return (x ^ (x >> 16)) % size
