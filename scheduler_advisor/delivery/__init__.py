"""Handing a report to people: webhook and mail, retried, once per window, secrets never shown."""
