"""What a hand-over refuses. Messages say what, where, and what to do."""

from scheduler_advisor.errors import AdvisorError


class HandoverError(AdvisorError):
    """A configuration cannot be read, or a wish contradicts the site."""
