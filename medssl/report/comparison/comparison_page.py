"""The page that compares several runs: results of every data set, differences to the baselines, every run."""

from pathlib import Path

from medssl.core.files import write_text_atomically
from medssl.metrics.catalogue import DICE
from medssl.report.comparison.compare import Comparison
from medssl.report.comparison.difference_tables import difference_tables, reading_help
from medssl.report.comparison.thesis_tables import by_dataset, results_grid, results_lead, seeds_grid
from medssl.report.figures.coefficients import coefficient_panels
from medssl.report.figures.pictures import picture
from medssl.report.templating import render

TEMPLATE = "medssl.report.comparison/comparison_page.html.j2"


def write_comparison(comparison: Comparison, out: str | Path) -> Path:
    """Writes the page to `out`, whole or not at all, and returns it."""
    write_text_atomically(out, comparison_html(comparison))
    return Path(out)


def comparison_html(comparison: Comparison) -> str:
    """The page, with every name in it escaped."""
    rows = comparison.rows
    datasets = by_dataset(rows)
    curves = comparison.coefficients
    main = rows[0].task.main if rows else DICE
    return render(
        TEMPLATE,
        title=" and ".join(datasets) or "No runs",
        subtitle=f"{sum(len(row.seeds) for row in rows)} runs · {len({row.method for row in rows})} methods",
        notices=comparison.notices,
        results_lead=results_lead(rows),
        results=[(dataset, results_grid(dataset_rows)) for dataset, dataset_rows in datasets.items()],
        differences=difference_tables(comparison.differences),
        reading_help=reading_help(comparison.differences),
        coefficients=picture(coefficient_panels, curves, main) if curves else None,
        main=main.axis_title,
        seeds=seeds_grid(rows),
    )
