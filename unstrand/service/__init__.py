"""The one process that owns the store: pages, API, metrics, writer and background work.

Nothing is imported here: a command that only looks for a running service must not load its pages.
"""
