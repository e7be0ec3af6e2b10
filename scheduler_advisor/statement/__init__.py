"""Statements as documents: one HTML file, a PDF, a CSV."""

from scheduler_advisor.statement.csv_form import lines
from scheduler_advisor.statement.forms import FORMS, file_name, rendered, safe_name

__all__ = ["FORMS", "file_name", "lines", "rendered", "safe_name"]
