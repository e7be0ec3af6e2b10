"""What can go wrong while facts come in. Messages say what, where, and what to do."""


class CollectorError(Exception):
    """Base of every error this package raises on purpose."""


class StoreError(CollectorError):
    """The store's file cannot be used as asked."""


class StoreBusyError(StoreError):
    """Another process holds the file."""


class StoreTooNewError(StoreError):
    """The file was written by a newer version."""


class ImportRefusedError(CollectorError):
    """An input is broken; nothing of it was taken in."""


class DriverError(CollectorError):
    """The GPU driver or its library cannot be used."""
