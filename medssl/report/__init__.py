"""Reports on finished, failed and running runs: tables for the terminal, figures, and one HTML page."""

from medssl.report.html import PAPER_CROP_NOTICE, write_comparison, write_report
from medssl.report.runs import Run, load_run
from medssl.report.tables import compare_runs, comparison_table, summarise, summary_table

__all__ = [
    "PAPER_CROP_NOTICE",
    "Run",
    "compare_runs",
    "comparison_table",
    "load_run",
    "summarise",
    "summary_table",
    "write_comparison",
    "write_report",
]
