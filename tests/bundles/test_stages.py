"""A training of several stages: a budget of compute is kept, a resumed run equals an unbroken one, all is recorded."""

import json

import pytest
import torch

from medssl.bundle import run_bundle
from medssl.core.checkpoint import CheckpointStore
from medssl.core.errors import ConfigError

BUDGET = 60


@pytest.fixture(scope="module")
def training(bundles_dir, phantom_dir, tmp_path_factory):
    """train(folder, **keys) trains iterated self-training with a small budget."""
    files = [str(bundles_dir / "teacher_student" / "configs" / f"{name}.json") for name in ("train", "smoke")]
    shared = {"dataset_name": "phantom", "dataset_dir": str(phantom_dir), "labelled": 2, "mlflow": False}

    def train(folder, **keys):
        given = {"method": "pseudo_bank", "patch_passes": BUDGET, "batch_size": 4, "max_epochs": None, **keys}
        given = {"steps_per_epoch": 2, "samples": 0, "test": 2, "validation": 1, "output_dir": str(folder), **given}
        run_bundle("training", files, **shared, **given)
        return folder

    return train


@pytest.fixture(scope="module")
def trained(training, tmp_path_factory):
    return training(tmp_path_factory.mktemp("stages") / "run")


def facts_of(run):
    return json.loads((run / "run.json").read_text())


def test_both_stages_together_keep_the_budget(trained):
    passes = facts_of(trained)["patch_passes"]
    assert set(passes) == {"pretraining", "pseudo_bank"}
    assert passes["pretraining"]["taught"] == 0
    per_stage = [stage["units"] for stage in passes.values()]
    assert sum(per_stage) == pytest.approx(BUDGET, rel=0.2)  # whole epochs of two steps
    assert per_stage[0] == pytest.approx(per_stage[1], rel=0.25)


def test_history_names_the_stages_and_epochs_go_on(trained):
    lines = [json.loads(line) for line in (trained / "history.jsonl").read_text().splitlines()]
    epochs = {line["stage"]: [] for line in lines if line["kind"] == "epoch"}
    for line in lines:
        if line["kind"] == "epoch":
            epochs[line["stage"]].append(line["epoch"])
    assert list(epochs) == ["pretraining", "pseudo_bank"]
    assert epochs["pretraining"] + epochs["pseudo_bank"] == list(range(1, epochs["pseudo_bank"][-1] + 1))


def test_the_second_stage_starts_from_what_the_first_one_evaluates(trained):
    first = CheckpointStore(trained / "checkpoints_pretraining").load_latest("cpu")[0]["method"]
    assert any(key.startswith("average.module.") for key in first)


def test_a_resumed_training_equals_an_unbroken_one(training, trained, tmp_path):
    folder = tmp_path / "run"
    with pytest.raises(RuntimeError), pytest.MonkeyPatch.context() as patch:
        patch.setattr("medssl.methods.pseudo_bank.PseudoBank.forward", _stop)
        training(folder)
    training(folder, resume=True)
    ours, theirs = (CheckpointStore(run / "checkpoints").load_latest("cpu")[0]["method"] for run in (folder, trained))
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[key], theirs[key]) for key in ours if isinstance(ours[key], torch.Tensor))


def _stop(self, batch):
    raise RuntimeError("the machine was switched off")


def test_a_budget_that_is_too_small_is_refused_before_anything_is_written(training, tmp_path):
    with pytest.raises((ConfigError, RuntimeError)) as caught:
        training(tmp_path / "run", patch_passes=5)
    texts = [str(caught.value), str(caught.value.__cause__)]
    assert any("patch_passes 5: too few for one step of the stage" in text for text in texts)
    assert not (tmp_path / "run" / "run.json").exists()


def weights_in(run, stage, part):
    """The weights of a part of a method, as the last checkpoint of a stage has them."""
    folder = run / ("checkpoints" if stage is None else f"checkpoints_{stage}")
    state = CheckpointStore(folder).load_latest("cpu")[0]["method"]
    return {key.removeprefix(part): value for key, value in state.items() if key.startswith(part)}


def all_equal(first, second):
    return first.keys() == second.keys() and all(torch.equal(first[key], second[key]) for key in first)


def test_every_student_of_a_noisy_student_is_taught_by_the_stage_before_and_a_resumed_run_is_the_same(
    training, tmp_path
):
    choice = {"method": "noisy_student", "patch_passes": 120}
    run = training(tmp_path / "run", **choice)
    assert set(facts_of(run)["patch_passes"]) == {"pretraining", "round_1", "round_2", "noisy_student"}
    for before, after in (("pretraining", "round_1"), ("round_1", "round_2")):
        assert all_equal(weights_in(run, before, "network."), weights_in(run, after, "teacher."))
        assert not all_equal(weights_in(run, after, "network."), weights_in(run, after, "teacher."))
    broken = tmp_path / "broken"
    with pytest.raises(RuntimeError), pytest.MonkeyPatch.context() as patch:
        patch.setattr("medssl.methods.noisy_student.NoisyStudent.forward", _stop)
        training(broken, **choice)
    training(broken, resume=True, **choice)
    assert all_equal(weights_in(broken, None, "network."), weights_in(run, None, "network."))


def test_teacher_of_reciprocal_learning_starts_from_pre_training_and_the_student_is_exported(training, tmp_path):
    run = training(tmp_path / "run", method="reciprocal_learning", patch_passes=100, learning_rate=1e-9)
    taught, teacher = weights_in(run, "pretraining", "network."), weights_in(run, None, "teacher.")
    assert all(torch.allclose(taught[key], teacher[key], atol=1e-6) for key in taught)
    exported = torch.load(run / "bundle" / "models" / "model.pt", weights_only=True)
    assert all_equal(exported, weights_in(run, None, "network."))
