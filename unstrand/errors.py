"""What the shell can refuse. Messages say what, where, and what to do."""


class UnstrandError(Exception):
    """Base of every error this package raises on purpose; exit code 1."""


class ServiceError(UnstrandError):
    """The service cannot start, run or stop as asked."""


class BackPressureError(ServiceError):
    """The writer takes no batch now; the sender keeps it and tries again."""


class RequestRefusedError(UnstrandError):
    """A request asks for something that is not there or is too large."""

    def __init__(self, what: str, *, where: str, remedy: str, status: int = 400) -> None:
        super().__init__(f"{where}: {what}. {remedy}")
        self.what = what
        self.where = where
        self.remedy = remedy
        self.status = status


class SettingsError(UnstrandError):
    """A setting cannot be used."""


class OutputError(UnstrandError):
    """A result cannot be written as asked."""


class ServerAnswerError(UnstrandError):
    """The service was asked and did not give an answer that can be used."""
