"""What the readers refuse. A broken file is refused by `collector.traces`, with its line."""

from scheduler_advisor.errors import AdvisorError


class ReaderError(AdvisorError):
    """The file is whole, and yet not what was asked for."""
