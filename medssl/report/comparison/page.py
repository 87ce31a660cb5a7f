"""The page that compares several runs: results of every data set, differences to the baselines, every run."""

from pathlib import Path

from medssl.core.files import write_text_atomically
from medssl.report.comparison.compare import Comparison
from medssl.report.comparison.difference_tables import difference_tables, reading_help
from medssl.report.comparison.thesis_tables import by_dataset, results_grid, results_lead
from medssl.report.figures.coefficients import coefficient_panels
from medssl.report.figures.pictures import picture
from medssl.report.grids import seeds_grid
from medssl.report.page import render

COMPARISON = """{% extends "base" %}
{% import "parts" as parts %}
{% block content %}
<header>
<p class="eyebrow">medssl comparison</p>
<h1>{{ title }}</h1>
<p class="status">{{ subtitle }}</p>
{% for notice in notices %}<p class="notice">{{ notice }}</p>
{% endfor %}</header>
<section class="stacked">
<h2>Results</h2>
<p class="lead">{{ results_lead }}</p>
{% for dataset, grid in results %}
<h3>{{ dataset }}</h3>
{{ parts.grid(grid) }}
{% endfor %}
</section>
{% if differences %}
<section>
<h2>Differences</h2>
{% for text in reading_help %}<p class="lead">{{ text }}</p>
{% endfor %}
{% for table in differences %}
<h3>{{ table.title }} <span>{{ table.lead }}</span></h3>
{{ parts.grid(table.grid) }}
{% for note in table.notes %}<p class="lead">{{ note }}</p>
{% endfor %}
{% endfor %}
</section>
{% endif %}
{% if coefficients %}
<section>
<h2>Coefficients</h2>
<p class="lead">Mean Dice ± sample standard deviation over seeds against one coefficient at a time. The runs of a line
agree in all other settings.</p>
{{ parts.picture(coefficients, "Dice against the coefficients of the losses") }}
</section>
{% endif %}
<section class="dense">
<h2>Every run</h2>
{{ parts.grid(seeds) }}
</section>
{% endblock %}
"""


def write_comparison(comparison: Comparison, out: str | Path) -> Path:
    """Writes the page to `out`, whole or not at all, and returns it."""
    write_text_atomically(out, comparison_html(comparison))
    return Path(out)


def comparison_html(comparison: Comparison) -> str:
    """The page, with every name in it escaped."""
    rows = comparison.rows
    datasets = by_dataset(rows)
    return render(
        COMPARISON,
        title=" and ".join(datasets) or "No runs",
        subtitle=f"{sum(len(row.seeds) for row in rows)} runs · {len({row.method for row in rows})} methods",
        notices=comparison.notices,
        results_lead=results_lead(rows),
        results=[(dataset, results_grid(of_dataset)) for dataset, of_dataset in datasets.items()],
        differences=difference_tables(comparison.differences),
        reading_help=reading_help(comparison.differences),
        coefficients=picture(coefficient_panels, comparison.coefficients) if comparison.coefficients else None,
        seeds=seeds_grid(rows),
    )
