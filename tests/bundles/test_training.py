"""`training` through stock MONAI leaves a complete run, resumes exactly, and says clearly what is wrong."""

import csv
import json

import nibabel as nib
import numpy as np
import pytest
import torch

from medssl.bundle import run_bundle
from medssl.core.errors import ConfigError, error_behind
from medssl.engine import load_tensors


def history(run, kind):
    lines = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    return [line for line in lines if line["kind"] == kind]


def final_weights(run):
    newest = sorted((run / "checkpoints").glob("epoch_*.pt"))[-1]
    return load_tensors(newest)["method"]


def test_a_run_leaves_facts_history_checkpoints_and_a_case_table(trained_run):
    facts = json.loads((trained_run / "run.json").read_text())
    split = json.loads((trained_run / "split.json").read_text())
    assert facts["status"] == "finished" and facts["split_hash"] == split["hash"]
    assert (facts["labelled"], facts["validation"], facts["test"], facts["unlabelled"]) == (3, 2, 3, 4)
    assert facts["config"]["network_def::dropout"] == "0.3"
    assert [row["epoch"] for row in history(trained_run, "epoch")] == [1, 2]
    assert [row["step"] for row in history(trained_run, "step")] == [1, 2, 3, 4]
    assert all(0 <= row["dice"] <= 1 for row in history(trained_run, "validation"))
    rows = list(csv.DictReader((trained_run / "evaluation" / "per_case.csv").open()))
    assert {row["case"] for row in rows} == {case["id"] for case in split["cases"] if case["role"] == "test"}
    assert all(row["structure"] == "kidney" for row in rows)


def test_mlflow_run_has_config_tags_metrics_and_artifacts(trained_run):
    from mlflow import MlflowClient

    facts = json.loads((trained_run / "run.json").read_text())
    client = MlflowClient(facts["tracking_uri"])
    run = client.get_run(facts["mlflow_run_id"])
    assert run.info.status == "FINISHED" and run.info.run_name == "smoke"
    assert run.data.params["network_def::widths"] == "[4, 8]"
    assert run.data.tags["split_hash"] == facts["split_hash"] and run.data.tags["git_sha"] == facts["git_sha"]
    assert run.data.tags["seed"] == "0" and run.data.tags["checkpoint"].endswith("epoch_0002.pt")
    assert [m.step for m in client.get_metric_history(run.info.run_id, "loss")] == [1, 2, 3, 4]
    assert {"epoch_loss", "validation_dice", "test_dice_kidney"} <= set(run.data.metrics)
    assert [f.path for f in client.list_artifacts(run.info.run_id, "evaluation")] == ["evaluation/per_case.csv"]
    assert any(f.path.endswith("training_curves.png") for f in client.list_artifacts(run.info.run_id, "figures"))


def test_resumed_run_equals_the_unbroken_one_bit_for_bit(train_smoke, trained_run, tmp_path):
    run = train_smoke(tmp_path / "run", max_epochs=1, cosine_steps=4)
    unbroken = train_smoke(tmp_path / "unbroken", cosine_steps=4)
    train_smoke(run, resume=True, cosine_steps=4)
    resumed, expected = final_weights(run), final_weights(unbroken)
    assert all(torch.equal(resumed[name], expected[name]) for name in expected)
    assert [r["loss"] for r in history(run, "step")] == [r["loss"] for r in history(unbroken, "step")]
    assert (run / "evaluation" / "per_case.csv").read_text().count("\n") == 4


def test_finished_run_is_not_overwritten(train_smoke, trained_run):
    with pytest.raises(RuntimeError) as caught:
        train_smoke(trained_run)
    error = error_behind(caught.value)
    assert isinstance(error, ConfigError) and "--resume true" in str(error)


def test_resume_with_another_split_is_refused(train_smoke, trained_run):
    with pytest.raises(RuntimeError) as caught:
        train_smoke(trained_run, resume=True, seed=5)
    assert "split" in str(error_behind(caught.value))


@pytest.mark.parametrize(
    ("keys", "part"),
    [
        ({"dataset_name": "kidneys"}, "Known: folder"),
        ({"labelled": 40}, "labelled 40"),
        ({"target": "spleen"}, "target 'spleen'"),
        ({"cache": "cloud"}, "cache 'cloud'"),
    ],
)
def test_wrong_choices_get_one_clear_error(train_smoke, tmp_path, keys, part):
    with pytest.raises(RuntimeError) as caught:
        train_smoke(tmp_path / "run", **keys)
    assert part in str(error_behind(caught.value))


def test_bad_scan_stops_the_training_before_it_starts(train_smoke, phantom_dir, tmp_path):
    import shutil

    folder = tmp_path / "data"
    shutil.copytree(phantom_dir, folder)
    bad = folder / "images" / "phantom_003.nii.gz"
    bad.write_bytes(bad.read_bytes()[:500])
    with pytest.raises(RuntimeError) as caught:
        train_smoke(tmp_path / "run", dataset_dir=str(folder))
    assert "phantom_003.nii.gz" in str(error_behind(caught.value))
    assert not (tmp_path / "run" / "history.jsonl").exists()


def test_training_for_int8_is_refused_before_anything_is_written(train_smoke, tmp_path):
    with pytest.raises(RuntimeError) as caught:
        train_smoke(tmp_path / "run", backend="int8")
    assert "medssl quantise RUN" in str(error_behind(caught.value)) and not (tmp_path / "run").exists()


def test_upper_bound_at_the_centre_is_one_command_and_can_be_scored_in_other_ways(train_smoke, tmp_path, bundles_dir):
    sizes = {"region": "centre", "region_size": [24, 24], "patch_size": [16, 16, 16], "stride": [16, 16, 16]}
    run = train_smoke(tmp_path / "run", labelled=9, validation=None, **sizes, pavpu_region="structures")
    facts = json.loads((run / "run.json").read_text())
    assert (facts["labelled"], facts["unlabelled"], facts["validation"]) == (9, 0, 0) and facts["region"] == "centre"
    for file in (run / "evaluation" / "predictions").glob("*_entropy.nii.gz"):
        entropy = np.asarray(nib.load(file).dataobj)
        start = [(length - 24) // 2 for length in entropy.shape[:2]]
        centre = entropy[start[0] : start[0] + 24, start[1] : start[1] + 24]
        assert centre.sum() > 0 and np.isclose(centre.sum(), entropy.sum())  # nothing is predicted outside

    first = list(csv.DictReader((run / "evaluation" / "per_case.csv").open()))
    config = bundles_dir / "mcdropout_unet3d" / "configs" / "evaluate.json"
    run_bundle("evaluating", [config], output_dir=str(run), voxel_distances=True)
    again = list(csv.DictReader((run / "evaluation" / "per_case.csv").open()))
    assert [row["pavpu"] for row in again] == [row["pavpu"] for row in first] and "hd95_voxels" in again[0]
    run_bundle("evaluating", [config], output_dir=str(run), pavpu_region="body")
    assert [row["pavpu"] for row in csv.DictReader((run / "evaluation" / "per_case.csv").open())] != [
        row["pavpu"] for row in first
    ]
    assert json.loads((run / "evaluation" / "settings.json").read_text())["pavpu_region"] == "body"
