"""What can go wrong while advice is made. Messages say what, where, and what to do."""


class AdvisorError(Exception):
    """Base of every error this package raises on purpose."""


class GoalsError(AdvisorError):
    """The operator's goals cannot be read as written."""


class AdviceStateError(AdvisorError):
    """A recommendation cannot be moved to the state asked for."""


class ReportError(AdvisorError):
    """The report cannot be made in the form asked for."""


class DeliveryError(AdvisorError):
    """A report could not be handed to its receiver; the message holds no secret."""
