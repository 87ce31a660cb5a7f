"""NP-SemiSeg on the slices of scans through stock MONAI: train, export, predict, review, evaluate, report."""

import csv
import json
import shutil

import nibabel as nib
import numpy as np
import pytest
import torch
from monai.bundle import ConfigWorkflow, run, verify_net_in_out
from typer.testing import CliRunner

from medssl.bundle import Command
from medssl.bundle.command import started
from medssl.cli import app
from medssl.core.errors import ConfigError
from medssl.data.split import ROLES
from medssl.engine import load_tensors
from medssl.inference import Predictor, load_predictor
from medssl.security import check_bundle
from natural_image_ext.inference import SliceInferer

HEADS = [("plain", "MT"), ("dropout", "MT w/ MC dropout")]


def table(run_dir, folder="evaluation", without=("seconds",)):
    rows = csv.DictReader((run_dir / folder / "per_case.csv").open())
    return [{key: value for key, value in row.items() if key not in without} for row in rows]


def method_of(run_dir):
    return load_tensors(sorted((run_dir / "checkpoints").glob("epoch_*.pt"))[-1])["method"]


def medssl(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def scans(phantom_dir, tmp_path):
    folder = tmp_path / "scans"
    folder.mkdir()
    for index in (0, 1):
        shutil.copy(phantom_dir / "images" / f"phantom_{index:03d}.nii.gz", folder)
    return folder


def test_a_run_is_one_of_scans_with_its_cases_and_their_table(slice_run):
    facts = json.loads((slice_run / "run.json").read_text())
    assert facts["status"] == "finished" and facts["method"] == "MT w/ NP-SemiSeg" and "task" not in facts
    assert (facts["labelled"], facts["unlabelled"], facts["validation"], facts["test"]) == (3, 4, 2, 3)
    cases = json.loads((slice_run / "split.json").read_text())["cases"]
    roles = {role: {case["patient"] for case in cases if case["role"] == role} for role in ROLES}
    assert sum(map(len, roles.values())) == len(set.union(*roles.values())) == 12
    rows = table(slice_run)
    assert {row["case"] for row in rows} == roles["test"] and {row["structure"] for row in rows} == {"kidney"}
    assert all(0 <= float(row[name]) <= 1 for row in rows for name in ("dice", "pavpu", "ece"))


def test_history_has_all_losses_and_the_dice_of_validation_cases(slice_run):
    lines = [json.loads(line) for line in (slice_run / "history.jsonl").read_text().splitlines()]
    steps = [line for line in lines if line["kind"] == "step"]
    assert len(steps) == 4 and {"labelled", "unlabelled", "kl", "confidence", "lr"} <= set(steps[0])
    assert [0 <= line["dice"] <= 1 for line in lines if line["kind"] == "validation"] == [True, True]


def test_exported_bundle_holds_the_averaged_network_and_its_whole_banks(slice_run):
    weights, method = load_tensors(slice_run / "bundle" / "models" / "model.pt"), method_of(slice_run)
    assert weights["head.latent_banks.rows"].shape == (2, 16, 32)
    assert all(torch.equal(value, method[f"average.module.{name}"]) for name, value in weights.items())


def test_exported_bundle_predicts_what_the_run_evaluated(slice_run, phantom_dir):
    predictor = load_predictor(slice_run)
    assert isinstance(predictor, Predictor) and isinstance(predictor.inferer, SliceInferer)
    case = table(slice_run)[0]["case"]
    found = predictor({"id": case, "image": str(phantom_dir / "images" / f"{case}.nii.gz")})
    for name, values in (("seg", found.segmentation), ("entropy", found.entropy)):
        stored = nib.load(slice_run / "evaluation" / "predictions" / f"{case}_{name}.nii.gz")
        assert np.allclose(np.asarray(stored.dataobj), values, atol=1e-6) and np.allclose(stored.affine, found.affine)
    settings = json.loads((slice_run / "evaluation" / "settings.json").read_text())
    assert settings["samples"] == 2 and settings["weights"] == predictor.weights_digest()


def test_exported_bundle_is_safe_and_has_the_shapes_it_states(slice_run):
    configs = slice_run / "bundle" / "configs"
    assert check_bundle(slice_run / "bundle") == []
    verify_net_in_out("network_def", str(configs / "metadata.json"), str(configs / "inference.json"), device="cpu")
    stated = json.loads((configs / "metadata.json").read_text())["network_data_format"]
    assert stated["inputs"]["image"]["channel_def"]["1"] == "slice"
    assert stated["outputs"]["pred"]["channel_def"] == {"0": "background", "1": "kidney"}


@pytest.mark.parametrize(("head", "title"), HEADS)
def test_heads_are_chosen_by_one_key_and_served_alike(train_slices, phantom_dir, tmp_path, head, title):
    folder = train_slices(tmp_path / head, head=head, max_epochs=1, validation=0)
    assert json.loads((folder / "run.json").read_text())["method"] == title
    image = str(phantom_dir / "images" / "phantom_000.nii.gz")
    found = load_predictor(folder, samples=3)({"id": "phantom_000", "image": image})
    assert (found.mutual_information.max() > 1e-7) == (head == "dropout")


def test_resumed_run_equals_the_unbroken_one_bit_for_bit(train_slices, slice_run, tmp_path):
    folder = tmp_path / "broken"
    shutil.copytree(slice_run, folder)
    (folder / "checkpoints" / "epoch_0002.pt").unlink()
    shutil.rmtree(folder / "evaluation")
    train_slices(folder, resume=True)
    whole, resumed = method_of(slice_run), method_of(folder)
    assert all(torch.equal(value, resumed[name]) for name, value in whole.items())
    assert table(folder) == table(slice_run)


def test_predict_and_review_take_scans_as_from_any_other_bundle(slice_run, scans, tmp_path):
    done = medssl("predict", scans, tmp_path / "out", "--bundle", slice_run)
    assert done.exit_code == 0, done.output
    scan, found = (nib.load(path) for path in (scans / "phantom_000.nii.gz", tmp_path / "out/phantom_000_seg.nii.gz"))
    assert found.shape == scan.shape and np.allclose(found.affine, scan.affine)
    record = json.loads((tmp_path / "out" / "phantom_000.json").read_text())
    assert record["made_by"]["samples"] == 2 and "kidney" in record["structures"]
    again = medssl("predict", scans, tmp_path / "out", "--bundle", slice_run)
    assert "0 predicted, 2 already there" in again.output
    done = medssl("review", scans, "--bundle", slice_run, "--samples", 1, "--output", tmp_path / "review")
    assert done.exit_code == 0, done.output
    assert len(list(csv.DictReader((tmp_path / "review" / "worklist.csv").open()))) == 2


def test_stride_of_windows_is_refused_where_there_are_slices(slice_run):
    with pytest.raises(ConfigError, match="no 'stride'"):
        load_predictor(slice_run, stride=[8, 8, 8])


def test_stock_monai_evaluates_and_predicts(slice_run, bundles_dir, scans, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(slice_run, folder)
    (folder / "evaluation" / "per_case.csv").unlink()
    config = str(bundles_dir / "np_semiseg" / "configs" / "scans_evaluate.json")
    run(run_id="evaluating", config_file=config, output_dir=str(folder))
    assert table(folder) == table(slice_run)
    root = folder / "bundle"
    keys = {"bundle_root": str(root), "dataset_dir": str(scans), "output_dir": str(tmp_path / "out")}
    run(run_id="predicting", config_file=str(root / "configs" / "inference.json"), **keys)
    assert (tmp_path / "out" / "phantom_001_prob.nii.gz").is_file()


def test_samples_and_report_are_those_of_scans(slice_run, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(slice_run, folder)
    done = medssl("samples", folder, "--values", "1,2", "--cases", 1)
    assert done.exit_code == 0, done.output
    rows = list(csv.DictReader((folder / "samples.csv").open()))
    assert float(rows[1]["dice"]) == pytest.approx(float(table(slice_run)[0]["dice"]), abs=1e-6)
    assert medssl("report", folder).exit_code == 0
    page = (folder / "report.html").read_text()
    assert "MT w/ NP-SemiSeg, 3 labelled" in page and "Number of samples" in page
    done = medssl("review", folder)
    assert done.exit_code == 0, done.output


def test_configuration_has_monais_required_properties(bundles_dir, phantom_dir, tmp_path):
    configs = bundles_dir / "np_semiseg" / "configs"
    files = [str(configs / f"{name}.json") for name in ("train", "scans", "scans_smoke")]
    keys = {
        "dataset_name": "phantom",
        "dataset_dir": str(phantom_dir),
        "output_dir": str(tmp_path / "run"),
        "mlflow": False,
        "labelled": 2,
    }
    with started(Command(tuple(files), keys)):
        workflow = ConfigWorkflow(config_file=files, workflow_type="train", **keys)
        workflow.initialize()
        assert workflow.check_properties() == []
