"""NP-SemiSeg through stock MONAI: train, resume, export, predict, evaluate, report, every framework and head."""

import csv
import json
import shutil

import pytest
import torch
from monai.bundle import ConfigParser, run
from PIL import Image
from torch import nn
from typer.testing import CliRunner

from medssl.bundle import Command, run_bundle
from medssl.bundle.command import started
from medssl.bundle.session import default_run_name
from medssl.cli import app
from medssl.core.errors import MedsslError, error_behind
from medssl.engine import load_tensors
from medssl.report import compare, write_markdown
from natural_image_ext.bundle import SceneTraining, SliceTraining
from natural_image_ext.bundle.options import SceneOptions
from natural_image_ext.inference.scene_sampling import SampledSceneInferer, SlidingScenes
from natural_image_ext.methods.segmentation import FRAMEWORKS


@pytest.fixture(scope="session")
def seg_bundle(bundles_dir):
    return bundles_dir / "np_semiseg"


def keys_of(bundle, scenes, output_dir, **overrides):
    return {
        "dataset_name": "folder",
        "dataset_dir": str(scenes),
        "image_size": 32,
        "labelled": 5,
        "validation": 1,
        "output_dir": str(output_dir),
        "runs_dir": str(output_dir.parent),
        "mlflow": False,
        **overrides,
    }


@pytest.fixture(scope="session")
def train_scenes(seg_bundle, scene_dir):
    """A function that runs the bundle's `training` with the smoke overlay into a folder."""

    def train(output_dir, **overrides):
        configs = [str(seg_bundle / "configs" / name) for name in ("train.json", "smoke.json")]
        run_bundle("training", configs, **keys_of(seg_bundle, scene_dir, output_dir, **overrides))
        return output_dir

    return train


@pytest.fixture(scope="session")
def seg_run(train_scenes, tmp_path_factory):
    return train_scenes(tmp_path_factory.mktemp("np_semiseg") / "smoke", mlflow=True)


def state(run_dir):
    return load_tensors(sorted((run_dir / "checkpoints").glob("epoch_*.pt"))[-1])


def table(run_dir, folder="evaluation", without=("seconds",)):
    rows = csv.DictReader((run_dir / folder / "per_case.csv").open())
    return [{key: value for key, value in row.items() if key not in without} for row in rows]


def test_a_run_leaves_facts_checkpoints_and_a_table_of_images(seg_run):
    facts = json.loads((seg_run / "run.json").read_text())
    assert facts["status"] == "finished" and facts["method"] == "U2PL w/ NP-SemiSeg" and facts["task"] == "scenes"
    assert (facts["labelled"], facts["unlabelled"], facts["validation"], facts["test"]) == (4, 7, 1, 4)
    assert [row["case"] for row in table(seg_run)] == ["images/a_6", "images/a_7", "images/b_6", "images/b_7"]
    lines = [json.loads(line) for line in (seg_run / "history.jsonl").read_text().splitlines()]
    steps = [line for line in lines if line["kind"] == "step"]
    assert {"labelled", "unlabelled", "kl", "confidence", "lr"} <= set(steps[0])
    assert [0 <= line["miou"] <= 1 for line in lines if line["kind"] == "validation"] == [True, True]
    assert steps[-1]["lr"] < steps[0]["lr"]


def test_mlflow_has_the_runs_metrics_and_artifacts(seg_run):
    from mlflow import MlflowClient

    facts = json.loads((seg_run / "run.json").read_text())
    client = MlflowClient(facts["tracking_uri"])
    tracked = client.get_run(facts["mlflow_run_id"]).data
    measured = json.loads((seg_run / "evaluation" / "metrics.json").read_text())
    for name in ("miou", "accuracy", "pavpu"):
        assert tracked.metrics[f"test_{name}"] == pytest.approx(measured[name]), name
    assert {"labelled", "unlabelled", "kl", "epoch_loss", "validation_miou"} <= set(tracked.metrics)
    paths = [file.path for file in client.list_artifacts(facts["mlflow_run_id"], "evaluation")]
    assert paths == ["evaluation/per_case.csv"]


def test_resumed_run_equals_the_unbroken_one_bit_for_bit(train_scenes, seg_run, tmp_path):
    folder = tmp_path / "broken"
    shutil.copytree(seg_run, folder)
    (folder / "checkpoints" / "epoch_0002.pt").unlink()
    shutil.rmtree(folder / "evaluation")
    train_scenes(folder, resume=True)
    whole, resumed = state(seg_run)["method"], state(folder)["method"]
    assert whole.keys() == resumed.keys() and any("latent_banks.rows" in name for name in whole)
    assert all(torch.equal(value, resumed[name]) for name, value in whole.items())
    assert table(folder) == table(seg_run)


@pytest.mark.parametrize("variant", [name for name in FRAMEWORKS if name != "u2pl"])
def test_frameworks_train_by_one_key(train_scenes, tmp_path, variant):
    folder = train_scenes(tmp_path / variant, variant=variant, max_epochs=1, validation=0)
    assert json.loads((folder / "run.json").read_text())["method"].startswith(FRAMEWORKS[variant].title)
    assert len(table(folder)) == 4


@pytest.mark.parametrize(("head", "title"), [("plain", "U2PL"), ("dropout", "U2PL w/ MC dropout")])
def test_heads_are_chosen_by_one_key(train_scenes, tmp_path, head, title):
    folder = train_scenes(tmp_path / head, head=head, max_epochs=1, validation=0)
    assert json.loads((folder / "run.json").read_text())["method"] == title


def test_evaluation_alone_writes_the_same_table(seg_run, seg_bundle, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(seg_run, folder)
    (folder / "evaluation" / "per_case.csv").unlink()
    config = str(seg_bundle / "configs" / "evaluate.json")
    run(run_id="evaluating", config_file=config, output_dir=str(folder))
    assert table(folder) == table(seg_run)


def test_folder_is_segmented_and_a_damaged_image_stops_nothing(seg_run, scene_dir, tmp_path):
    root, images = seg_run / "bundle", tmp_path / "new"
    images.mkdir()
    shutil.copy(scene_dir / "images" / "a_0.png", images / "one.png")
    (images / "bad.png").write_bytes(b"no image")
    keys = {"bundle_root": str(root), "dataset_dir": str(images), "output_dir": str(tmp_path / "out")}
    with pytest.raises((RuntimeError, MedsslError)) as caught:
        run(run_id="predicting", config_file=str(root / "configs" / "inference.json"), **keys)
    assert "bad.png: not a readable picture" in str(error_behind(caught.value))
    assert (tmp_path / "out" / "predictions.csv").read_text().count("\n") == 2
    with Image.open(tmp_path / "out" / "one_classes.png") as found:
        assert found.size == (48, 40) and found.mode == "L"
    assert (tmp_path / "out" / "one_entropy.png").is_file()


def test_exported_bundle_keeps_centres_alone(seg_run):
    weights = load_tensors(seg_run / "bundle" / "models" / "model.pt")
    saved = state(seg_run)["method"]
    assert weights["head.latent_banks.rows"].shape[1] == 1
    rows, counts = (saved[f"average.module.head.latent_banks.{part}"] for part in ("rows", "counts"))
    assert torch.allclose(weights["head.latent_banks.rows"][:, 0], rows.sum(1) / counts[:, None])


def test_samples_are_measured_and_shown(seg_run, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(seg_run, folder)
    done = CliRunner().invoke(app, ["samples", str(folder), "--values", "1,2"])
    assert done.exit_code == 0, done.output
    rows = list(csv.DictReader((folder / "samples.csv").open()))
    measured = json.loads((seg_run / "evaluation" / "metrics.json").read_text())
    assert float(rows[1]["miou"]) == pytest.approx(measured["miou"], abs=1e-6), (
        "2 samples are what it was evaluated with"
    )
    assert all(float(row["seconds"]) > 0 for row in rows)
    assert CliRunner().invoke(app, ["report", str(folder)]).exit_code == 0
    assert "Number of samples" in (folder / "report.html").read_text()


def test_report_and_comparison(train_scenes, seg_run, tmp_path):
    done = CliRunner().invoke(app, ["report", str(seg_run)])
    assert done.exit_code == 0, done.output
    page = (seg_run / "report.html").read_text()
    assert "U2PL w/ NP-SemiSeg, 4 labelled" in page and page.count("data:image/png;base64,") == 2
    assert (seg_run / "figures" / "scenes.png").is_file()
    other = train_scenes(tmp_path / "mt", variant="mean_teacher", head="plain")
    comparison = compare([seg_run, other], against=["MT"])
    text = write_markdown(comparison, tmp_path / "table.md").read_text()
    measured = json.loads((seg_run / "evaluation" / "metrics.json").read_text())
    assert "mIoU ↑" in text and f"{measured['miou']:.3f}" in text and "folder: mIoU against MT" not in text
    assert "mIoU against MT (points)" in text


@pytest.mark.parametrize(
    ("keys", "part"),
    [
        ({"variant": "fixmatch"}, "variant 'fixmatch' is unknown"),
        ({"head": "linear"}, "head 'linear' is unknown"),
        ({"labelled": 50}, "training images have a mask"),
        ({"lists_dir": "nowhere"}, "labeled.txt: no such file"),
    ],
)
def test_wrong_choices_get_one_clear_error(train_scenes, tmp_path, keys, part):
    with pytest.raises((RuntimeError, MedsslError)) as caught:
        train_scenes(tmp_path / "run", **keys)
    assert part in str(error_behind(caught.value))


def _train_and_save(rank, bundle, scenes, folder):
    command = command_of(bundle, ["smoke", "ddp"], **keys_of(bundle, scenes, folder / "run", batch_size=4))
    with started(command):
        parser = ConfigParser()
        parser.read_config(list(command.config_files))
        parser.update(command.keys)
        parser.get_parsed_content("train#trainer").run()
        torch.save(parser.get_parsed_content("images").method.state_dict(), folder / f"rank{rank}.pt")


def test_two_processes_end_with_the_same_weights_and_banks(run_in_group, seg_bundle, scene_dir, tmp_path):
    assert run_in_group(_train_and_save, seg_bundle, scene_dir, tmp_path) == [0, 0]
    first, second = (torch.load(tmp_path / f"rank{rank}.pt") for rank in (0, 1))
    names = [name for name in first if "running_" not in name]  # running means of a process are its own
    assert sum("_banks." in name for name in names) == 12 and any("memory.rows" in name for name in names)
    assert all(torch.equal(first[name], second[name]) for name in names)


@pytest.mark.parametrize(
    ("overlays", "keys", "steps"),
    [
        ([], {}, 7),
        ([], {"variant": "augseg"}, 0),
        (["bench"], {}, 100),
        (["scans"], {}, 0),
        (["scans", "scans_bench"], {}, 150),
    ],
)
def test_u2pl_learns_from_labels_alone_in_its_first_epoch(seg_bundle, overlays, keys, steps):
    choices = parsed(seg_bundle, "choices", overlays, **{"steps_per_epoch": 7, **keys})
    assert choices.warm_up == steps


@pytest.mark.parametrize(
    ("overlays", "keys", "name"),
    [
        ([], {}, "u2pl_np_voc_0.0625_seed0"),
        ([], {"lists_dir": "lists/183"}, "u2pl_np_voc_list_183_seed0"),
        (["scans"], {"lists_dir": "lists", "labelled": 8}, "mean_teacher_np_kits19_8_seed0"),
    ],
)
def test_folder_is_named_after_what_says_which_images_are_labelled(seg_bundle, overlays, keys, name):
    data, choices = (parsed(seg_bundle, part, overlays, **keys) for part in ("data", "choices"))
    kind = SliceTraining if overlays else SceneTraining
    training = kind(nn.Identity(), data=data, choices=choices, device="cpu", bundle_root=seg_bundle)
    asked, lists = data.options, None if overlays else data.options.lists_dir
    opened = default_run_name("np_semiseg", asked.dataset_name, asked.labelled, asked.seed, training.variant, lists)
    assert opened == name


@pytest.mark.parametrize(
    ("keys", "inferer", "crop_to"),
    [
        ({"dataset_name": "voc"}, SampledSceneInferer, 480),
        ({"dataset_name": "voc", "crop_to": None}, SampledSceneInferer, None),
        ({"dataset_name": "cityscapes"}, SlidingScenes, None),
        ({"dataset_name": "cityscapes", "evaluation": "whole"}, SampledSceneInferer, None),
        ({"dataset_name": "camvid"}, SampledSceneInferer, None),
    ],
)
def test_data_sets_are_evaluated_as_in_the_thesis_unless_keys_say_otherwise(seg_bundle, keys, inferer, crop_to):
    choices = parsed(seg_bundle, "choices", [], **keys)
    training = SceneTraining(nn.Identity(), data=choices.data, choices=choices, device="cpu", bundle_root=seg_bundle)
    assert choices.of_recipe("crop_to") == crop_to
    with started(command_of(seg_bundle, [], **keys)):
        assert type(training.inferer) is inferer


def test_full_size_defaults_are_those_of_the_thesis(seg_bundle):
    config = json.loads((seg_bundle / "configs" / "train.json").read_text())
    assert (config["encoder"], config["samples"], config["bank_size"]) == ("resnet50", 5, 2560)
    assert (config["head"], config["dataset_name"], config["kl_weight"]) == ("np", "voc", 0.005)
    defaults = SceneOptions()
    assert (defaults.pavpu_window, defaults.pavpu_threshold_nats, defaults.aggregator) == (64, 0.4, "attention")


def command_of(bundle, overlays, **keys):
    return Command(tuple(str(bundle / "configs" / f"{name}.json") for name in ("train", *overlays)), keys)


def parsed(bundle, part, overlays, **keys):
    """A part of the bundle's configuration, as a command with these keys builds it."""
    command = command_of(bundle, overlays, **keys)
    with started(command):
        parser = ConfigParser()
        parser.read_config(list(command.config_files))
        parser.update(keys)
        return parser.get_parsed_content(part)
