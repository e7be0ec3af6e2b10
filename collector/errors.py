"""What can go wrong while facts come in. Messages say what, where, and what to do."""


class CollectorError(Exception):
    """Base of every error this package raises on purpose."""


class StoreError(CollectorError):
    """The store's file cannot be used as asked."""


class StoreBusyError(StoreError):
    """Another process holds the file."""


class StoreLimitError(StoreError):
    """A question takes more time or memory than it may; a smaller one is answered."""


class StoreTooNewError(StoreError):
    """The file was written by a newer version."""


class ImportRefusedError(CollectorError):
    """An input is broken; nothing of it was taken in."""


class DriverError(CollectorError):
    """The GPU driver or its library cannot be used."""


class DriverMissingError(DriverError):
    """This machine has no NVIDIA driver library, or the driver is not loaded."""


class DriverGoneError(DriverError):
    """The library answered before and does not any more; only a new process can help."""


class ShadowedBindingError(DriverError):
    """The module `pynvml` is not the one of the package nvidia-ml-py."""


class BatchRefusedError(CollectorError):
    """A batch of an agent is broken, or comes from an agent that may not speak for the node."""


class AgentConflictError(CollectorError):
    """Another agent speaks for this node at the moment; keep the batch and try again later."""


class AgentForbiddenError(CollectorError):
    """The sender may not speak for the node."""
