"""NP-Match and its peers through stock MONAI: train, resume, export, predict, evaluate, report; bad input is named."""

import csv
import json
import shutil

import pytest
import torch
from monai.bundle import ConfigParser, run
from PIL import Image
from typer.testing import CliRunner

from medssl.bundle import Command, run_bundle
from medssl.bundle.command import started
from medssl.cli import app
from medssl.core.errors import ConfigError, DataError, error_behind
from medssl.engine import load_tensors
from medssl.report import compare, write_markdown
from natural_image_ext.bundle.options import PictureOptions
from natural_image_ext.data import read_image_split
from natural_image_ext.inference import PicturePredictor, load_picture_predictor
from natural_image_ext.methods.classification import METHODS
from natural_image_ext.networks import build_classifier


@pytest.fixture(scope="session")
def np_bundle(bundles_dir):
    return bundles_dir / "np_match"


@pytest.fixture(scope="session")
def train_pictures(np_bundle, picture_dir):
    """A function that runs the bundle's `training` with the smoke overlay into a folder."""

    def train(output_dir, **overrides):
        configs = [str(np_bundle / "configs" / name) for name in ("train.json", "smoke.json")]
        run_bundle("training", configs, **keys_of(np_bundle, picture_dir, output_dir, **overrides))
        return output_dir

    return train


def keys_of(bundle, pictures, output_dir, **overrides):
    return {
        "dataset_name": "folder",
        "dataset_dir": str(pictures),
        "image_size": 16,
        "labelled": 9,
        "validation": 3,
        "output_dir": str(output_dir),
        "runs_dir": str(output_dir.parent),
        "mlflow": False,
        **overrides,
    }


ACCEPTING = {"confidence": 0.34, "uncertainty": 2.0}  # an untrained network is accepted too: all terms are reached


@pytest.fixture(scope="session")
def np_run(train_pictures, tmp_path_factory):
    return train_pictures(tmp_path_factory.mktemp("np_match") / "smoke", mlflow=True, **ACCEPTING)


def history(run_dir, kind):
    lines = [json.loads(line) for line in (run_dir / "history.jsonl").read_text().splitlines()]
    return [line for line in lines if line["kind"] == kind]


def state(run_dir):
    return load_tensors(sorted((run_dir / "checkpoints").glob("epoch_*.pt"))[-1])


def table(run_dir, folder="evaluation"):
    return (run_dir / folder / "per_sample.csv").read_text()


def test_a_run_leaves_facts_history_checkpoints_and_a_table_of_pictures(np_run):
    facts = json.loads((np_run / "run.json").read_text())
    assert facts["status"] == "finished" and facts["method"] == "NP-Match, JS" and facts["task"] == "classification"
    assert (facts["labelled"], facts["unlabelled"], facts["validation"], facts["test"]) == (6, 27, 3, 6)
    assert facts["classes"] == ["blue", "green", "red"]
    assert {"labelled", "unlabelled", "divergence", "accepted", "lr"} <= set(history(np_run, "step")[0])
    assert [0 <= record["accuracy"] <= 1 for record in history(np_run, "validation")] == [True, True]
    rows = list(csv.DictReader(table(np_run).splitlines()))
    assert len(rows) == 6 and {row["label"] for row in rows} == {"blue", "green", "red"}


def test_mlflow_has_the_runs_metrics_and_artifacts(np_run):
    from mlflow import MlflowClient

    facts = json.loads((np_run / "run.json").read_text())
    client = MlflowClient(facts["tracking_uri"])
    tracked = client.get_run(facts["mlflow_run_id"])
    measured = json.loads((np_run / "evaluation" / "metrics.json").read_text())
    assert tracked.data.metrics["test_error"] == pytest.approx(measured["error"])
    assert tracked.data.metrics["test_uce"] == pytest.approx(measured["uce"])
    assert {"accepted", "epoch_loss", "validation_accuracy"} <= set(tracked.data.metrics)
    assert {file.path for file in client.list_artifacts(facts["mlflow_run_id"], "evaluation")} == {
        "evaluation/per_sample.csv"
    }


def test_resumed_run_equals_the_unbroken_one_bit_for_bit(train_pictures, np_run, tmp_path):
    folder = tmp_path / "broken"
    shutil.copytree(np_run, folder)
    (folder / "checkpoints" / "epoch_0002.pt").unlink()
    shutil.rmtree(folder / "evaluation")
    train_pictures(folder, resume=True, **ACCEPTING)
    whole, resumed = state(np_run), state(folder)
    assert whole["method"].keys() == resumed["method"].keys()
    assert any("latent_bank.rows" in name for name in whole["method"])
    assert (whole["method"]["selection.last_labels"] >= 0).any() and history(np_run, "step")[-1]["accepted"] > 0
    assert all(torch.equal(value, resumed["method"][name]) for name, value in whole["method"].items())
    assert table(folder) == table(np_run)


def test_resume_with_other_labels_is_refused(train_pictures, np_run, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(np_run, folder)
    with pytest.raises(RuntimeError) as caught:
        train_pictures(folder, resume=True, labelled=6)
    assert "this run would use" in str(error_behind(caught.value))


@pytest.mark.parametrize("variant", [name for name in METHODS if name != "np_match"])
def test_variants_train_by_one_key(train_pictures, tmp_path, variant):
    folder = train_pictures(tmp_path / variant, variant=variant, max_epochs=1, validation=0)
    assert json.loads((folder / "run.json").read_text())["method"] == METHODS[variant].title
    assert table(folder).count("\n") == 7


@pytest.mark.parametrize(("divergence", "title"), [("kl", "NP-Match, KL"), ("dual_js", "NP-Match, dual JS")])
def test_divergence_is_chosen_by_one_key(train_pictures, tmp_path, divergence, title):
    folders = [
        train_pictures(tmp_path / name, divergence=name, max_epochs=1, validation=0, **ACCEPTING)
        for name in ("js", divergence)
    ]
    assert json.loads((folders[1] / "run.json").read_text())["method"] == title
    first, other = (history(folder, "step")[0] for folder in folders)
    assert first["labelled"] == other["labelled"] and 0 < first["divergence"] != other["divergence"] > 0


def test_exported_bundle_holds_the_averaged_weights_and_the_means_of_the_banks(np_run):
    predictor = load_picture_predictor(np_run)
    saved = state(np_run)["method"]
    averaged = {
        name.removeprefix("average.module."): value
        for name, value in saved.items()
        if name.startswith("average.module")
    }
    for name, value in predictor.network.named_parameters():
        assert torch.equal(value, averaged[name])
    bank = predictor.network.head.latent_bank
    assert bank.rows.shape[0] == 1
    count = averaged["head.latent_bank.count"]
    assert torch.allclose(bank.mean(), averaged["head.latent_bank.rows"].sum(0) / count)
    whole = build_classifier("wrn_10_1", 3, samples=2, bank_size=16)
    whole.load_state_dict(averaged)
    test = read_image_split(np_run / "split.json").test
    assert torch.allclose(predictor(test), PicturePredictor(whole, predictor.classes, 16, predictor.inferer)(test))


def test_evaluation_alone_writes_the_same_table(np_run, np_bundle, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(np_run, folder)
    (folder / "evaluation" / "per_sample.csv").unlink()
    config = str(np_bundle / "configs" / "evaluate.json")
    run(run_id="evaluating", config_file=config, output_dir=str(folder))
    assert table(folder) == table(np_run)
    run(run_id="evaluating", config_file=config, output_dir=str(folder), role="validation")
    assert table(folder, "evaluation_validation").count("\n") == 4


def test_folder_is_predicted_most_uncertain_first_and_a_damaged_picture_stops_nothing(np_run, picture_dir, tmp_path):
    root = np_run / "bundle"
    pictures = tmp_path / "new"
    shutil.copytree(picture_dir / "red", pictures)
    (pictures / "bad.png").write_bytes(b"no picture")
    config = str(root / "configs" / "inference.json")
    keys = {"bundle_root": str(root), "dataset_dir": str(pictures), "output_dir": str(tmp_path / "out")}
    with pytest.raises(RuntimeError) as caught:
        run(run_id="predicting", config_file=config, **keys)
    assert "bad.png: not a readable picture" in str(error_behind(caught.value))
    rows = list(csv.DictReader((tmp_path / "out" / "predictions.csv").open()))
    unsure = [float(row["uncertainty_nats"]) for row in rows]
    assert len(rows) == 12 and unsure == sorted(unsure, reverse=True)
    assert {row["predicted"] for row in rows} <= {"red", "green", "blue"}
    assert list(json.loads((tmp_path / "out" / "failures.json").read_text())) == ["bad.png"]


def test_report_shows_classes_pictures_and_training(np_run):
    done = CliRunner().invoke(app, ["report", str(np_run)])
    assert done.exit_code == 0, done.output
    page = (np_run / "report.html").read_text()
    assert "NP-Match, JS, 6 labelled" in page and "surest mistakes" in page and "accepted" in page
    assert page.count("data:image/png;base64,") == 5
    assert (np_run / "figures" / "class_uncertainty.png").is_file()


def test_samples_are_measured_and_shown(np_run, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(np_run, folder)
    done = CliRunner().invoke(app, ["samples", str(folder), "--values", "1,2"])
    assert done.exit_code == 0, done.output
    rows = list(csv.DictReader((folder / "samples.csv").open()))
    assert [row["samples"] for row in rows] == ["1", "2"] and all(float(row["seconds"]) > 0 for row in rows)
    measured = json.loads((np_run / "evaluation" / "metrics.json").read_text())
    assert float(rows[1]["uce"]) == pytest.approx(measured["uce"], abs=1e-6), "2 samples are what it was evaluated with"
    assert CliRunner().invoke(app, ["report", str(folder)]).exit_code == 0
    assert "Number of samples" in (folder / "report.html").read_text()


def test_runs_are_compared_by_their_error(train_pictures, np_run, tmp_path):
    other = train_pictures(tmp_path / "fixmatch", variant="fixmatch")
    comparison = compare([np_run, other], against=["FixMatch"])
    (difference,) = comparison.differences
    errors = [json.loads((folder / "evaluation" / "metrics.json").read_text())["error"] for folder in (np_run, other)]
    assert difference.metric.name == "error" and difference.mean == pytest.approx(100 * (errors[0] - errors[1]))
    text = write_markdown(comparison, tmp_path / "table.md").read_text()
    assert "| Method | L vs. U | Error (%) ↓ | UCE (%) ↓ | Seeds |" in text
    assert f"{100 * errors[0]:.2f}" in text and "pictures trained on" in text


def test_scans_and_pictures_are_not_compared(np_run, trained_run):
    with pytest.raises(ConfigError, match="compare each kind by itself"):
        compare([np_run, trained_run])


@pytest.mark.parametrize(
    ("keys", "part"),
    [
        ({"variant": "fixmtch"}, "variant 'fixmtch' is unknown"),
        ({"divergence": "l2"}, "divergence 'l2' is unknown"),
        ({"labelled": 10}, "multiple of the 3 classes"),
        ({"labelled": 60}, "pictures left. Ask for fewer"),
        ({"backbone": "wrn_99"}, "backbone 'wrn_99' is unknown"),
        ({"ratio": 0}, "ratio 0: expected at least 1"),
        ({"dataset_dir": "nowhere"}, "nowhere: no such folder"),
    ],
)
def test_wrong_choices_get_one_clear_error(train_pictures, tmp_path, keys, part):
    with pytest.raises((RuntimeError, ConfigError, DataError)) as caught:
        train_pictures(tmp_path / "run", **keys)
    assert part in str(error_behind(caught.value))


def test_bad_pictures_stop_the_training_before_it_starts(train_pictures, picture_dir, tmp_path):
    pictures = tmp_path / "pictures"
    shutil.copytree(picture_dir, pictures)
    (pictures / "red" / "05.png").write_bytes((pictures / "red" / "05.png").read_bytes()[:200])
    Image.new("L", (16, 16)).save(pictures / "blue" / "03.png")
    with pytest.raises((RuntimeError, DataError)) as caught:
        train_pictures(tmp_path / "run", dataset_dir=str(pictures))
    text = str(error_behind(caught.value))
    assert "05.png: not a readable picture" in text and "03.png: mode L, expected RGB" in text
    assert not list((tmp_path / "run").glob("checkpoints/*"))


def _train_and_save(rank, bundle, pictures, folder):
    files = [str(bundle / "configs" / f"{name}.json") for name in ("train", "smoke", "ddp")]
    keys = keys_of(bundle, pictures, folder / "run", **ACCEPTING)
    with started(Command(tuple(files), keys)):
        parser = ConfigParser()
        parser.read_config(files)
        parser.update(keys)
        parser.get_parsed_content("run")
        torch.save(parser.get_parsed_content("images").method.state_dict(), folder / f"rank{rank}.pt")


def test_two_processes_end_with_the_same_weights_banks_and_curriculum(run_in_group, np_bundle, picture_dir, tmp_path):
    assert run_in_group(_train_and_save, np_bundle, picture_dir, tmp_path) == [0, 0]
    first, second = (torch.load(tmp_path / f"rank{rank}.pt") for rank in (0, 1))
    names = [name for name in first if "norm" not in name]  # running means of a process are its own
    assert sum("bank" in name for name in names) == 12 and (first["selection.last_labels"] >= 0).any()
    assert (tmp_path / "run" / "bundle" / "models" / "model.pt").is_file() and table(tmp_path / "run").count("\n") == 7
    assert all(torch.equal(first[name], second[name]) for name in names)
    # four steps of 2 + 2 labelled points, and the vector a bank begins with
    assert int(first["network.head.deterministic_bank.count"]) == min(16, 1 + 4 * 4)


def test_full_size_defaults_are_those_of_the_thesis(np_bundle):
    config = json.loads((np_bundle / "configs" / "train.json").read_text())
    assert config["max_epochs"] * config["steps_per_epoch"] == 2**20
    assert (config["bank_size"], config["samples"], PictureOptions().divergence_weight) == (2560, 10, 0.01)
    assert (config["ema_decay"], config["dataset_name"], config["variant"]) == (0.999, "cifar10", "np_match")
