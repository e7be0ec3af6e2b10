"""Taking in what agents send: each batch once, all of it or nothing of it."""

from __future__ import annotations

from collector.ingest.take import take, take_all

__all__ = ["take", "take_all"]
