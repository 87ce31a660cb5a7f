"""Reports on finished, failed and running runs: tables for the terminal, figures, and one HTML page."""

from medssl.report.comparison.compare import PAPER_CROP_NOTICE, Comparison, compare
from medssl.report.comparison.comparison_page import write_comparison
from medssl.report.comparison.differences import write_differences_csv
from medssl.report.comparison.markdown import write_markdown
from medssl.report.comparison.rows import compare_runs
from medssl.report.comparison.terminal import print_comparison
from medssl.report.health_warnings import health_warnings
from medssl.report.run import Run
from medssl.report.run_page import no_scores_text, write_report
from medssl.report.runs import load_run
from medssl.report.tables import summarise, summary_table

__all__ = [
    "PAPER_CROP_NOTICE",
    "Comparison",
    "Run",
    "compare",
    "compare_runs",
    "health_warnings",
    "load_run",
    "no_scores_text",
    "print_comparison",
    "summarise",
    "summary_table",
    "write_comparison",
    "write_differences_csv",
    "write_markdown",
    "write_report",
]
