"""Runs of pictures and of scenes: medssl finds their tasks, and shows them as their tasks say."""

import csv
import json

import pytest

from medssl.core.errors import ConfigError, DataError
from medssl.report import compare, load_run, summary_table, write_comparison, write_report
from medssl.report.comparison.thesis_tables import results_grid, results_lead
from natural_image_ext.inference import evaluation, sample_curve, scene_curve, scene_evaluation
from natural_image_ext.report.figures import class_uncertainty_by_labels
from natural_image_ext.report.tasks import CLASSIFICATION, SCENES

TEXTS = {"sample", "case", "structure", "label", "predicted", "samples"}
FACTS = {"method": "mine", "dataset": "birds", "labelled": 4, "unlabelled": 9, "status": "finished", "void": 255}
HISTORY = [
    {"kind": "step", "step": 1, "loss": 1.0, "accepted": 0.5},
    {"kind": "validation", "step": 1, "accuracy": 0.4, "miou": 0.3},
]


@pytest.fixture
def make_run(tmp_path):
    """The folder of a run of a task, from its rows and its metrics.json."""

    def make(task, rows, measured, seed=0, **facts):
        folder = tmp_path / f"{task.name}_{seed}"
        (folder / "evaluation").mkdir(parents=True)
        known = {**FACTS, "name": folder.name, "seed": seed, "task": task.name, "classes": ["owl", "jay"], **facts}
        (folder / "run.json").write_text(json.dumps(known))
        (folder / "history.jsonl").write_text("".join(json.dumps(record) + "\n" for record in HISTORY))
        (folder / "evaluation" / "metrics.json").write_text(json.dumps(measured))
        with (folder / "evaluation" / task.table).open("w", newline="") as stream:
            writer = csv.DictWriter(stream, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        return folder

    return make


@pytest.fixture
def pictures(make_run):
    """Two seeds of four pictures, the jays wrong."""
    rows = [
        {"sample": f"p{n}", "label": name, "predicted": "owl", "confidence": 0.6, "uncertainty_nats": 0.1 * n}
        | {"error": int(name == "jay"), "top5_error": 0}
        for n, name in enumerate(["owl", "owl", "jay", "jay"])
    ]
    classes = {name: {"accuracy": value, "mean_uncertainty_nats": 0.2} for name, value in (("owl", 1.0), ("jay", 0.0))}
    measured = {"error": 0.5, "top5_error": 0.0, "uce": 0.25, "mean_uncertainty_nats": 0.15, "classes": classes}
    return [make_run(CLASSIFICATION, rows, {**measured, "error": 0.5 + 0.1 * seed}, seed) for seed in (0, 1)]


@pytest.fixture
def scenes(make_run):
    rows = [
        {"case": f"s{n}", "structure": "", "miou": 0.2 * n, "accuracy": 0.8, "pavpu": 0.7}
        | {"mean_entropy_nats": 0.1, "seconds": 2.0}
        for n in (1, 2, 3)
    ]
    measured = {"miou": 0.45, "accuracy": 0.8, "pavpu": 0.7, "seconds_per_image": 2.0, "classes": {"owl": 0.4}}
    return [make_run(SCENES, rows, measured, seed) for seed in (0, 1)]


def titles(grid):
    return [column.title for column in grid.columns]


def test_medssl_finds_the_tasks_by_their_entry_points(pictures, scenes):
    assert [load_run(folders[0]).task for folders in (pictures, scenes)] == [CLASSIFICATION, SCENES]


def test_the_page_of_pictures_has_percent_tiles_classes_and_the_accuracy_of_the_validation(pictures):
    page = write_report(pictures[0]).read_text()
    assert "<dt>Error</dt><dd>50.00 %" in page and "<dt>Top-5 error</dt>" in page and "<dt>UCE</dt><dd>25.00 %" in page
    assert page.index(">jay</td>") < page.index(">owl</td>")  # the least accurate first
    assert "Loss, learning rate and validation accuracy over the steps" in page
    assert "No pictures: " in page and "Share of accepted pseudo-labels" in page


def test_the_page_of_scenes_lists_every_image_worst_first(scenes):
    page = write_report(scenes[0]).read_text()
    assert "<dt>mIoU</dt><dd>45.00 %" in page and "<dt>Pixel accuracy</dt>" in page
    assert page.index(">s1</td>") < page.index(">s2</td>") < page.index(">s3</td>")
    assert "Loss, learning rate and validation mIoU over the steps" in page


def test_pictures_are_compared_in_percent(pictures, tmp_path):
    found = compare(pictures)
    grid = results_grid(found.rows)
    assert titles(grid) == ["Method", "L vs. U", "Error (%) ↓", "Top-5 error (%) ↓", "UCE (%) ↓", "Seeds"]
    assert [cell.text for cell in grid.rows[0].cells] == ["mine", "4 vs. 9", "55.00", "0.00", "25.00", "2"]
    assert "in percent" in results_lead(found.rows)
    assert "Error (%) ↓" in write_comparison(found, tmp_path / "page.html").read_text()


def test_scenes_are_compared_by_what_was_measured_of_all_pixels(scenes):
    found = compare(scenes)
    grid = results_grid(found.rows)
    names = ["mIoU ↑", "Pixel accuracy ↑", "PAvPU ↑", "Entropy (nats)", "Time an image (s)"]
    assert titles(grid) == ["Method", "L vs. U", *names, "Seeds"]
    assert grid.rows[0].cells[2].text == "0.450"
    assert "all pixels of all test images" in results_lead(found.rows)


def test_terminal_tables_name_what_was_measured(pictures, scenes):
    assert list(summary_table(load_run(pictures[0])).columns[0].cells) == ["UCE", "Error", "Top-5 error", "pictures"]
    assert list(summary_table(load_run(scenes[0])).columns[0].cells)[:3] == ["mIoU", "Pixel accuracy", "PAvPU"]


@pytest.mark.parametrize(
    ("task", "written"),
    [
        (CLASSIFICATION, {*evaluation.COLUMNS, *sample_curve.COLUMNS} - {"seconds"}),
        (SCENES, {*scene_evaluation.COLUMNS, *scene_curve.COLUMNS}),
    ],
)
def test_every_number_that_an_evaluation_writes_is_known(task, written):
    assert written - TEXTS <= {metric.name for metric in (*task.metrics, *task.columns)}
    assert {metric.name for metric in task.sampled} <= written


@pytest.mark.parametrize(("share", "warned"), [(9e-6, True), (0.0099, True), (0.01, False), (None, False)])
def test_a_latent_that_hardly_reaches_the_output_is_warned_of(make_run, share, warned):
    measured = {} if share is None else {"latent_share": share}
    rows = [{"case": "s1", "structure": "", "miou": 0.5, "accuracy": 0.8, "pavpu": 0.7, "mean_entropy_nats": 0.1}]
    folder = make_run(SCENES, rows, {"miou": 0.5, **measured}, seed=7)
    page = write_report(folder).read_text()
    assert ("The latent hardly reaches the output" in page) == warned
    assert ("<dt>Latent share</dt>" in page) == (share is not None)
    assert ("Latent share" in list(summary_table(load_run(folder)).columns[0].cells)) == (share is not None)


def test_classes_of_all_numbers_of_labels_are_in_one_plot(make_run):
    def folder(labelled, seed, unsure):
        rows = [{"sample": "p", "label": "owl", "predicted": "owl", "uncertainty_nats": 0.1, "error": 0}]
        classes = {
            "owl": {"accuracy": 0.9, "mean_uncertainty_nats": unsure},
            "jay": {"accuracy": 0.5, "mean_uncertainty_nats": 2 * unsure},
        }
        return make_run(CLASSIFICATION, rows, {"classes": classes}, seed, labelled=labelled)

    runs = [load_run(folder(*given)) for given in ((250, 1, 0.1), (40, 2, 0.4), (40, 3, 0.6))]
    upper, lower = class_uncertainty_by_labels(runs).axes
    assert [text.get_text() for text in upper.get_legend().get_texts()] == ["40 labels", "250 labels"]
    assert [text.get_text() for text in lower.get_xticklabels()] == ["jay", "owl"], "the most uncertain first"
    assert [list(line.get_ydata()) for line in upper.lines] == [pytest.approx([1.0, 0.5]), pytest.approx([0.2, 0.1])]
    assert [list(line.get_ydata()) for line in lower.lines] == [pytest.approx([0.5, 0.9])] * 2


def test_runs_that_do_not_belong_together_are_in_no_plot(pictures, make_run):
    runs = [load_run(folder) for folder in pictures]
    rows = [{"sample": "p", "label": "owl", "predicted": "owl", "uncertainty_nats": 0.1, "error": 0}]
    other = load_run(make_run(CLASSIFICATION, rows, {}, 9, method="another"))
    with pytest.raises(ConfigError, match="one data set and one method"):
        class_uncertainty_by_labels([*runs, other])
    with pytest.raises(DataError, match="no evaluation of its classes"):
        class_uncertainty_by_labels([other])
