"""The tasks that natural_image_ext adds to medssl (entry points `medssl.tasks`): their pages, figures and tables."""

from collections.abc import Sequence

from medssl.metrics.catalogue import PAVPU, UCE
from medssl.report.comparison.rows import ComparisonRow
from medssl.report.run import Task
from medssl.report.tables import measured_table
from natural_image_ext.inference.sample_curve import write_picture_curve
from natural_image_ext.inference.scene_curve import write_scene_curve
from natural_image_ext.metrics import (
    ERROR,
    MIOU,
    PICTURE_ACCURACY,
    PICTURE_COLUMNS,
    PICTURE_METRICS,
    SCENE_COLUMNS,
    SCENE_METRICS,
    TOP5_ERROR,
)
from natural_image_ext.report import pictures_page, scenes_page


def _pictures_lead(rows: Sequence[ComparisonRow]) -> str:
    return (
        "Mean ± sample standard deviation over seeds, in percent. L vs. U: labelled and unlabelled pictures "
        "trained on. UCE: gap between uncertainty (entropy as a share of its largest value) and error, in bins."
    )


def _scenes_lead(rows: Sequence[ComparisonRow]) -> str:
    return (
        "Mean ± sample standard deviation over seeds. mIoU is over all pixels of all test images; differences are "
        "of the mean IoU of each image. L vs. U: labelled and unlabelled images trained on."
    )


CLASSIFICATION = Task(
    name="classification",
    case="picture",
    cases="pictures",
    table="per_sample.csv",
    needed=("sample", "label", "predicted", "uncertainty_nats", "error"),
    metrics=PICTURE_METRICS,
    columns=PICTURE_COLUMNS,
    percent=(ERROR, TOP5_ERROR, UCE),
    main=ERROR,
    validated=PICTURE_ACCURACY,
    sampled=(ERROR, UCE),
    template=pictures_page.TEMPLATE,
    content=pictures_page.pictures_content,
    figures=pictures_page.picture_figures,
    summary_table=measured_table,
    results_lead=_pictures_lead,
    write_sample_curve=write_picture_curve,
)

SCENES = Task(
    name="scenes",
    case="image",
    cases="images",
    table="per_case.csv",
    needed=("case", "structure", "miou", "pavpu"),
    metrics=SCENE_METRICS,
    columns=SCENE_COLUMNS,
    main=MIOU,
    validated=MIOU,
    sampled=(MIOU, PAVPU),
    template=scenes_page.TEMPLATE,
    content=scenes_page.scenes_content,
    figures=scenes_page.scene_figures,
    summary_table=measured_table,
    results_lead=_scenes_lead,
    write_sample_curve=write_scene_curve,
)
