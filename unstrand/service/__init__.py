"""The one process that owns the store: pages, API, metrics, writer and background work."""

from unstrand.service.run import serve

__all__ = ["serve"]
