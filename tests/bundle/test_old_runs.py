"""Runs made before a method was one file are read, evaluated, predicted with, served and resumed as ever."""

import csv
import json
import shutil

import nibabel
import numpy as np
import pytest
import torch

from medssl.bundle import Command, run_bundle
from medssl.bundle.command import started
from medssl.bundle.scans import begin_gbdl, begin_scans
from medssl.core.checkpoint import load_tensors
from medssl.inference import load_predictor
from medssl.report import load_run, write_report

SCANS = ("mcdropout_unet3d", "gbdl")
EACH_OF_SCANS = pytest.mark.parametrize("name", SCANS)
# what their command lines had besides the places, see tests/old_runs/README.md
KEYS_OF_SCANS = {
    "dataset_name": "phantom",
    "dataset_dir": "PHANTOMS",
    "labelled": 3,
    "validation": 2,
    "test": 2,
    "patch_size": [32, 32, 8],
    "stride": [32, 32, 8],
    "network_def#widths": [4, 6],
    "mlflow": False,
    "runs_dir": "runs",
}
KEYS = {
    "mcdropout_unet3d": KEYS_OF_SCANS,
    "gbdl": {**KEYS_OF_SCANS, "latent#network_def#widths": [4, 6], "latent#network_def#latent_dim": 2},
}


@pytest.fixture
def old_run(request, tmp_path, monkeypatch, phantom_dir, picture_dir):
    """A copy of an old run by its name, in a working folder with the data that it names."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "PHANTOMS").symlink_to(phantom_dir)
    (tmp_path / "PICTURES").symlink_to(picture_dir)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)

    def copied(name):
        return shutil.copytree(request.config.rootpath / "tests" / "old_runs" / name, tmp_path / "runs" / name)

    yield copied
    torch.set_num_threads(threads)


def table(run, file="per_case.csv"):
    with (run / "evaluation" / file).open() as stream:
        return [{key: value for key, value in row.items() if key != "seconds"} for row in csv.DictReader(stream)]


def same(first, second):
    if isinstance(first, torch.Tensor):
        return torch.equal(first, second)
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[key], second[key]) for key in first)
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(same(*pair) for pair in zip(first, second, strict=True))
    return first == second


@pytest.mark.parametrize(
    ("name", "title", "learns_from_unlabelled", "results"),
    [
        ("mcdropout_unet3d", "supervised", False, 2),
        ("gbdl", "GBDL", True, 2),
        ("np_match", "NP-Match, JS", True, 9),
    ],
)
def test_old_run_is_read_with_the_facts_of_its_title_and_has_a_report(
    old_run, name, title, learns_from_unlabelled, results
):
    run = load_run(old_run(name))
    assert run.status == "finished" and "method_facts" not in run.facts
    assert run.method_facts.title == title == run.method
    assert run.method_facts.learns_from_unlabelled is learns_from_unlabelled
    assert len(run.per_case) == results
    page = write_report(run.folder).read_text()
    assert title in page and run.facts["split_hash"] in page


def test_supervised_stands_before_gbdl_in_tables(old_run):
    supervised, gbdl = (load_run(old_run(name)) for name in SCANS)
    assert supervised.place_in_tables < gbdl.place_in_tables


@EACH_OF_SCANS
def test_old_run_is_evaluated_again_with_the_same_table(old_run, bundles_dir, name):
    run = old_run(name)
    stored = table(run)
    shutil.rmtree(run / "evaluation")
    run_bundle("evaluating", [bundles_dir / name / "configs" / "evaluate.json"], output_dir=str(run))
    assert table(run) == stored and len(stored) == 2


def test_old_run_on_pictures_is_evaluated_again_with_the_same_table(old_run, bundles_dir):
    run = old_run("np_match")
    stored = table(run, "per_sample.csv")
    shutil.rmtree(run / "evaluation")
    run_bundle("evaluating", [bundles_dir / "np_match" / "configs" / "evaluate.json"], output_dir=str(run))
    assert table(run, "per_sample.csv") == stored and len(stored) == 9


@EACH_OF_SCANS
def test_old_bundle_predicts_the_stored_segmentation(old_run, name):
    run = old_run(name)
    predictor = load_predictor(run / "bundle")
    case = table(run)[0]["case"]
    prediction = predictor({"id": case, "image": f"PHANTOMS/images/{case}.nii.gz"})
    stored = nibabel.load(run / "evaluation" / "predictions" / f"{case}_seg.nii.gz")
    assert np.array_equal(np.asarray(stored.dataobj), prediction.segmentation)
    settings = json.loads((run / "evaluation" / "settings.json").read_text())
    assert predictor.weights_digest() == settings["weights"]


def recipe_of(run):
    pytest.importorskip("monailabel", reason="needs pip install 'medssl[label]'")
    from medssl.label_app.recipe import find_recipe

    return find_recipe(run / "bundle")


@EACH_OF_SCANS
def test_choices_of_an_old_run_are_served_and_fit_the_bundle_of_today(old_run, bundles_dir, name):
    recipe = recipe_of(old_run(name))
    assert recipe.source == bundles_dir / name
    assert recipe.keys["max_epochs"] == {"mcdropout_unet3d": 2, "gbdl": 4}[name]
    assert recipe.keys["network_def::widths"] == [4, 6] and recipe.keys["learning_rate"] == 0.003
    written = json.loads((recipe.source / "configs" / "train.json").read_text())
    wiring = {key for key, value in written.items() if isinstance(value, list) and key != "stride"}
    assert wiring >= {"imports", "initialize", "run"} and not wiring & set(recipe.keys)
    with started(Command(tuple(map(str, recipe.configs)), recipe.keys)):
        if name == "gbdl":  # each refuses a key that it does not know
            begin_gbdl(recipe.source, 0)
        else:
            begin_scans(recipe.source, 0, "supervised")


def test_places_of_an_old_run_are_not_those_of_the_next(old_run):
    run = old_run("gbdl")
    facts = json.loads((run / "run.json").read_text())
    facts["config"]["first_stage_from"] = "runs/another"
    (run / "run.json").write_text(json.dumps(facts))
    places = {"first_stage_from", "output_dir", "dataset_dir", "bundle_root", "tracking_uri", "labelled"}
    assert not places & set(recipe_of(run).keys)


def test_old_model_is_trained_on_with_its_own_choices(old_run, tmp_path, capsys):
    run = old_run("mcdropout_unet3d")
    recipe = recipe_of(run)
    facts = json.loads((run / "bundle" / "configs" / "inference.json").read_text())["data_facts"]
    own = {"dataset_name": "phantom", "dataset_dir": "PHANTOMS", "labelled": 3, "test": 1, "validation": 2}
    keys = recipe.overlay(facts, run / "bundle" / "models" / "model.pt", **own)
    run_bundle("training", recipe.configs, **keys, output_dir="runs/next", mlflow=False)
    assert "start_from" in capsys.readouterr().out
    assert load_run(tmp_path / "runs" / "next").facts["config"]["network_def::widths"] == "[4, 6]"


@pytest.mark.parametrize(
    ("name", "kept", "written_again"),
    [
        ("mcdropout_unet3d", ["checkpoints/epoch_0001"], ["checkpoints/epoch_0002"]),
        (
            "gbdl",
            ["checkpoints_latent/epoch_0001"],
            ["checkpoints_latent/epoch_0002", "checkpoints/epoch_0003", "checkpoints/epoch_0004"],
        ),
        (
            "gbdl",
            ["checkpoints_latent/epoch_0001", "checkpoints_latent/epoch_0002", "checkpoints/epoch_0003"],
            ["checkpoints/epoch_0004"],
        ),
    ],
    ids=["mcdropout_unet3d", "gbdl in its first stage", "gbdl in its second stage"],
)
def test_old_run_resumed_in_the_middle_ends_as_it_did_bit_for_bit(old_run, bundles_dir, name, kept, written_again):
    run = old_run(name)
    ends = {file: load_tensors(run / f"{file}.pt") for file in written_again}
    history = (run / "history.jsonl").read_text().splitlines()
    results = table(run)
    stop(run, kept)
    configs = [bundles_dir / name / "configs" / file for file in ("train.json", "smoke.json")]
    run_bundle("training", configs, output_dir=str(run), resume=True, **KEYS[name])
    for file, end in ends.items():
        resumed = load_tensors(run / f"{file}.pt")
        resumed.pop("passes", None)  # counted since
        assert same(resumed, end), file
    assert comparable((run / "history.jsonl").read_text().splitlines()) == comparable(history)
    assert table(run) == results
    assert load_run(run).facts["status"] == "finished"


def stop(run, kept):
    """Leave of a run what it had when it was stopped at these checkpoints."""
    for folder in ("evaluation", "bundle"):
        shutil.rmtree(run / folder)
    for file in run.glob("checkpoints*/*"):
        if f"{file.parent.name}/{file.name.split('.')[0]}" not in kept:
            file.unlink()


def comparable(lines):
    """The records without times, and without what old runs did not measure: v.v on validation scans, patch passes."""
    records = [record for record in map(json.loads, lines) if record["kind"] != "passes"]
    left_out = {"validation": ("seconds", "v_squared")}
    return [
        {key: value for key, value in record.items() if key not in left_out.get(record["kind"], ("seconds",))}
        for record in records
    ]
