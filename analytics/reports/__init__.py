"""Typed answers; command line, API and pages show these and nothing else."""

from analytics.reports.cost import cost_report
from analytics.reports.ledger import ledger_report
from analytics.reports.report import Identity, Report

__all__ = ["Identity", "Report", "cost_report", "ledger_report"]
