"""Typed answers; command line, API and pages show these and nothing else."""

from analytics.reports.cost import cost_report
from analytics.reports.coverage import CoverageReport, coverage_report
from analytics.reports.efficiency import efficiency_report
from analytics.reports.jobs import jobs_report
from analytics.reports.ledger import ledger_report
from analytics.reports.report import Identity, Report
from analytics.reports.stranding import stranding_report

__all__ = [
    "CoverageReport",
    "Identity",
    "Report",
    "cost_report",
    "coverage_report",
    "efficiency_report",
    "jobs_report",
    "ledger_report",
    "stranding_report",
]
