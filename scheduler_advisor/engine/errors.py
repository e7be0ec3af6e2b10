"""What the simulator refuses. Messages say what, where, and what to do."""

from scheduler_advisor.errors import AdvisorError


class EngineError(AdvisorError):
    """Base of what the simulator's core raises on purpose."""


class JobsError(EngineError):
    """A list of jobs is broken."""


class ClusterError(EngineError):
    """A cluster's description contradicts itself."""


class PolicyError(EngineError):
    """A policy names a part or a value that does not exist."""


class SweepError(EngineError):
    """A sweep could not be finished."""
