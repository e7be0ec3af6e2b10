"""Advice: one kind per file under `kinds`, made comparable, grouped and ranked here."""
