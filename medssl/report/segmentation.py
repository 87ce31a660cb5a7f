"""The task of runs that segment scans."""

from medssl.inference.sample_curve import write_sample_curve
from medssl.metrics.catalogue import DICE, PAVPU, SCAN_COLUMNS, SCAN_METRICS
from medssl.report.comparison.thesis_tables import scans_lead
from medssl.report.run import Task
from medssl.report.scan_page import TEMPLATE, scan_content, scan_figures
from medssl.report.tables import structures_table

SEGMENTATION = Task(
    name="segmentation",
    case="scan",
    cases="cases",
    table="per_case.csv",
    needed=("case", "structure", "dice"),
    metrics=SCAN_METRICS,
    columns=SCAN_COLUMNS,
    main=DICE,
    validated=DICE,
    sampled=(DICE, PAVPU),
    template=TEMPLATE,
    content=scan_content,
    figures=scan_figures,
    summary_table=structures_table,
    results_lead=scans_lead,
    write_sample_curve=write_sample_curve,
    samples_by_case=True,
    of_scans=True,
)
