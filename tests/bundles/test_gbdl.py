"""GBDL through stock MONAI: both stages in one training, each alone, resumed anywhere, every variant by one key."""

import json
from functools import partial

import numpy as np
import pytest
import torch
from trainings import training_of

from medssl.core.errors import ConfigError, error_behind
from medssl.engine import load_tensors
from medssl.methods.gbdl import GBDLOptions


@pytest.fixture(scope="session")
def train_gbdl(bundles_dir, phantom_dir):
    """A function that runs a run id of the bundle with the smoke overlay into a folder."""
    train = training_of(bundles_dir / "gbdl", ("train", "smoke"), phantom_dir)
    return partial(train, labelled=2, validation=1, test=1)


@pytest.fixture(scope="session")
def gbdl_run(train_gbdl, tmp_path_factory):
    return train_gbdl(tmp_path_factory.mktemp("gbdl") / "smoke", mlflow=True)


def history(run_dir, kind):
    lines = [json.loads(line) for line in (run_dir / "history.jsonl").read_text().splitlines()]
    return [line for line in lines if line["kind"] == kind]


def weights(run_dir, folder="checkpoints"):
    newest = sorted((run_dir / folder).glob("epoch_*.pt"))[-1]
    return load_tensors(newest)["method"]


def same(a, b):
    return torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


def test_one_training_runs_both_stages_and_leaves_a_complete_run(gbdl_run):
    facts = json.loads((gbdl_run / "run.json").read_text())
    assert facts["status"] == "finished" and facts["method"] == "GBDL" and facts["bundle"] == "gbdl"
    assert [(r["stage"], r["epoch"], r["step"]) for r in history(gbdl_run, "epoch")] == [
        ("latent", 1, 2),
        ("latent", 2, 4),
        ("posterior", 3, 6),
        ("posterior", 4, 8),
    ]
    assert (gbdl_run / "evaluation" / "per_case.csv").read_text().count("\n") == 2
    assert {file.name for file in (gbdl_run / "bundle" / "configs").iterdir()} >= {"inference.json", "metadata.json"}


def test_health_of_both_stages_is_recorded(gbdl_run):
    latent, posterior = history(gbdl_run, "step")[0], history(gbdl_run, "step")[-1]
    assert {"kl", "mse", "latent_variance", "latent_mean_spread", "v_squared", "ce", "dice"} <= set(latent)
    assert {"ce", "dice", "pseudo_ce", "pseudo_dice"} <= set(posterior)
    (quality,) = history(gbdl_run, "health")
    assert quality["stage"] == "latent" and 0 <= quality["pseudo_label_dice"] <= 1
    validated = history(gbdl_run, "validation")
    assert [record["stage"] for record in validated] == ["latent", "posterior"]
    assert validated[0]["v_squared"] > 0 and "v_squared" not in validated[1]


def test_both_stages_are_one_mlflow_run(gbdl_run):
    from mlflow import MlflowClient

    facts = json.loads((gbdl_run / "run.json").read_text())
    client = MlflowClient(facts["tracking_uri"])
    assert len(client.search_runs([client.get_experiment_by_name("medssl/gbdl").experiment_id])) == 1
    tracked = client.get_run(facts["mlflow_run_id"])
    assert tracked.info.status == "FINISHED" and tracked.data.tags["method"] == "GBDL"
    assert [m.step for m in client.get_metric_history(facts["mlflow_run_id"], "latent_kl")] == [1, 2, 3, 4]
    assert [m.step for m in client.get_metric_history(facts["mlflow_run_id"], "posterior_loss")] == [5, 6, 7, 8]
    assert {"latent_health_pseudo_label_dice", "posterior_validation_dice", "test_dice_kidney"} <= set(
        tracked.data.metrics
    )


def test_reconstructions_are_kept_beside_their_inputs(gbdl_run):
    with np.load(gbdl_run / "reconstructions.npz", allow_pickle=False) as kept:
        assert kept["inputs"].shape == kept["reconstructions"].shape == (8, 64, 64)
        assert np.abs(kept["reconstructions"]).max() <= 1 and kept["inputs"].std() > 0
        assert len(set(kept["ids"])) == 8


def test_stages_alone_are_the_training_and_resume_bit_for_bit(train_gbdl, gbdl_run, tmp_path):
    alone = train_gbdl(tmp_path / "alone", "first_stage")
    assert json.loads((alone / "run.json").read_text())["status"] == "first stage finished"
    assert not (alone / "checkpoints").exists()
    train_gbdl(alone, "second_stage", resume=True)
    for folder in ("checkpoints_latent", "checkpoints"):
        found, expected = weights(alone, folder), weights(gbdl_run, folder)
        assert all(same(found[name], expected[name]) for name in expected)
    assert [r["loss"] for r in history(alone, "step")] == [r["loss"] for r in history(gbdl_run, "step")]


def test_second_stage_without_a_first_is_refused(train_gbdl, tmp_path):
    with pytest.raises(RuntimeError) as caught:
        train_gbdl(tmp_path / "run", "second_stage")
    error = error_behind(caught.value)
    assert isinstance(error, ConfigError) and "0 of 2 epochs" in str(error)


def test_another_second_stage_takes_the_first_stage_of_a_run(train_gbdl, gbdl_run, tmp_path):
    hard = train_gbdl(tmp_path / "hard", variant="hard_labels", first_stage_from=str(gbdl_run))
    assert {record["stage"] for record in history(hard, "epoch")} == {"posterior"}
    taken, source = weights(hard, "checkpoints_latent"), weights(gbdl_run, "checkpoints_latent")
    assert all(same(taken[name], source[name]) for name in source)
    for keys, part in (({"seed": 5}, "split"), ({"variant": "bounded_v"}, "LRL was trained with")):
        with pytest.raises(RuntimeError) as caught:
            train_gbdl(tmp_path / "other" / part, first_stage_from=str(gbdl_run), **keys)
        assert part in str(error_behind(caught.value))


@pytest.mark.parametrize("variant", ["self_training", "no_z", "ic+entropy_weighted", "volume+hard_labels+no_mse"])
def test_variants_train_by_one_key(train_gbdl, tmp_path, variant):
    found = train_gbdl(tmp_path / "run", variant=variant, health_cases=0)
    facts = json.loads((found / "run.json").read_text())
    assert facts["status"] == "finished" and facts["config"]["variant"] == variant
    assert ("mse" in history(found, "step")[0]) == (variant == "ic+entropy_weighted")
    assert history(found, "health") == []


def test_split_without_unlabelled_cases_is_refused(train_gbdl, tmp_path):
    with pytest.raises(RuntimeError) as caught:
        train_gbdl(tmp_path / "run", unlabelled=0)
    assert "no unlabelled case" in str(error_behind(caught.value))


def test_full_size_defaults_are_those_of_the_thesis(bundles_dir):
    config = json.loads((bundles_dir / "gbdl" / "configs" / "train.json").read_text())
    assert config["latent"]["network_def"]["widths"] == [64, 128, 256, 512, 512]
    assert config["latent"]["network_def"]["latent_dim"] == 256
    weights = ("ce_weight", "dice_weight", "mse_weight", "kl_weight", "beta_ce", "beta_dice", "pseudo_samples")
    options = GBDLOptions()
    assert [getattr(options, name) for name in weights] == [1.0, 2.0, 1.0, 0.005, 1.0, 2.0, 5]
    assert config["variant"] == "gbdl"
    assert (options.kl, options.pseudo) == ("product", "soft")
