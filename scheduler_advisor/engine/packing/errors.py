"""What can be wrong with a packing question."""

from scheduler_advisor.engine.errors import EngineError


class PackingError(EngineError):
    """The pods, the nodes or the policy cannot be packed as asked."""
