"""What can go wrong while facts are given a meaning. Messages say what, where, and what to do."""


class AnalyticsError(Exception):
    """Base of every error this package raises on purpose."""


class WindowError(AnalyticsError):
    """A window of time cannot be used."""


class PriceError(AnalyticsError):
    """A price row is refused, or time cannot be priced as asked."""


class OrgMapError(AnalyticsError):
    """A mapping of users or accounts to teams is refused."""


class AdjustmentError(AnalyticsError):
    """An adjustment of a bill is refused."""


class InvoiceError(AnalyticsError):
    """An invoice, a commitment, overhead or carbon row is refused."""


class StatementError(AnalyticsError):
    """A statement cannot be made as asked."""


class SettingError(AnalyticsError):
    """A setting of the ledger is refused."""


class LedgerError(AnalyticsError):
    """The ledger cannot be built from these facts."""


class ReportError(AnalyticsError):
    """A report cannot be made as asked."""


class ClosedDayError(AnalyticsError):
    """A day cannot be closed, or is closed and must not change."""
