"""Training on what was reviewed: who is held out, when the new model is served, and that a failure changes nothing."""

import json
import shutil
import subprocess

import numpy as np
import pytest

from medssl.core.checkpoint import load_tensors, save_tensors
from medssl.core.errors import ConfigError, DataError, MedsslError
from medssl.data.layouts import find_folder
from medssl.data.volumes import read_volume, write_nifti

pytest.importorskip("monailabel", reason="needs pip install 'medssl[label]'")
from monailabel.datastore.local import LocalDatastore

import medssl.label_app.shim.sitecustomize  # noqa: F401
from medssl.label_app import training
from medssl.label_app.datastore import StudyDatastore
from medssl.label_app.model import ServedModel
from medssl.label_app.recipe import find_recipe
from medssl.label_app.studies import Studies
from medssl.label_app.training import ReviewTraining, is_not_worse, mean_dice
from medssl.label_app.training_cases import HELD_OUT, LABELLED, UNLABELLED, _roles, run_examples, study_examples
from medssl.label_app.workspace import Workspace


@pytest.fixture
def store(scans_to_review, phantom_dir, tmp_path):
    """Five phantom studies of which three are reviewed."""
    shutil.copytree(scans_to_review, tmp_path / "studies")
    found = StudyDatastore(str(tmp_path / "studies"), {1: "kidney"})
    for index in range(3):
        submit(found, phantom_dir, tmp_path, index)
    return found


def submit(store, phantom_dir, folder, index):
    label = read_volume(phantom_dir / "labels" / f"phantom_{index:03d}.nii.gz")
    write_nifti(folder / "label.nii.gz", label.array > 0, label.affine, np.uint8)
    store.save_label(f"phantom_{index:03d}", str(folder / "label.nii.gz"), "final", {})


@pytest.fixture
def model(label_bundle, tmp_path):
    workspace = Workspace(tmp_path / "workspace")
    workspace.prepare()
    return ServedModel(workspace, label_bundle, samples=1)


@pytest.fixture
def task(model):
    return ReviewTraining(model, find_recipe(model.given))


def test_a_store_that_knows_no_reviews_is_refused_before_anything_is_written(task, tmp_path):
    with pytest.raises(ConfigError, match=r"LocalDatastore: .*expected a StudyDatastore"):
        task({}, LocalDatastore(str(tmp_path)))
    assert not task.model.workspace.trainings.is_dir() or not list(task.model.workspace.trainings.iterdir())


@pytest.fixture
def scores(monkeypatch, label_bundle):
    """scores(before, after): a training that ends with a model whose every weight is a bit larger, with this Dice."""

    def given(before, after):
        def trained(source, overlay, folder):
            shutil.copytree(label_bundle / "bundle", folder / "run" / "bundle")
            weights = folder / "run" / "bundle" / "models" / "model.pt"
            state = {name: value + 0.01 for name, value in load_tensors(weights).items()}
            save_tensors(state, weights)
            (folder / "run" / "evaluation").mkdir()
            (folder / "run" / "evaluation" / "per_case.csv").write_text(f"case,structure,dice\na,kidney,{after}\n")
            facts = json.loads((label_bundle / "run.json").read_text())
            tracked = {"tracking_uri": "sqlite:///x", "mlflow_run_id": "1"}
            (folder / "run" / "run.json").write_text(json.dumps({**facts, **tracked}))

        monkeypatch.setattr(training, "run_training", trained)
        monkeypatch.setattr(training, "evaluate", lambda *_: [{"dice": before}])

    return given


@pytest.mark.parametrize(
    ("before", "after", "status"), [(0.5, 0.6, "swapped"), (0.5, 0.5, "swapped"), (0.5, 0.49, "kept")]
)
def test_new_model_is_served_only_if_it_is_not_worse(task, store, scores, before, after, status):
    scores(before, after)
    outcome = task({}, store)
    assert (outcome["status"], outcome["dice_before"], outcome["dice_after"]) == (status, before, after)
    served = task.model.bundle
    assert (served != task.model.given) == (status == "swapped")
    assert task.stats() == json.loads((task.model.workspace.trainings / "0001" / "outcome.json").read_text()) == outcome


def test_outcome_says_who_was_trained_on_and_who_held_out(task, store, scores):
    scores(0.1, 0.2)
    outcome = task({}, store)
    assert outcome["trained_on"]["labelled"] >= 2 and outcome["trained_on"]["unlabelled"] >= 2
    assert len(outcome["held_out"]["reviewed"]) == 1
    assert all(name.startswith("run-") for name in outcome["held_out"]["validation_cases_of_the_run"])
    assert outcome["mlflow"]["mlflow_run_id"] == "1" and outcome["left_out_as_empty"] == []


def test_outcome_says_which_reviews_could_not_be_used(task, store, scores, monkeypatch):
    scores(0.1, 0.2)
    dropped = [{"study": "phantom_003", "reason": "segment 'liver', the model has 1 kidney."}]
    monkeypatch.setattr(store, "left_out", lambda: dropped)
    assert task({}, store)["left_out_segmentations"] == task.stats()["left_out_segmentations"] == dropped


def test_scores_of_the_old_model_do_not_count_for_the_new_one(task, store, scores):
    studies = Studies(store, task.model)
    before = studies.result("phantom_003")
    assert studies.record("phantom_003") == before.record
    scores(0.1, 0.2)
    task({}, store)
    assert studies.record("phantom_003") is None
    after = studies.result("phantom_003")
    assert studies.record("phantom_003") == after.record != before.record


def test_swapped_model_survives_a_restart_and_is_forgotten_with_another_bundle(
    task, store, scores, label_bundle, tmp_path
):
    scores(0.1, 0.2)
    task({}, store)
    assert ServedModel(task.model.workspace, label_bundle).bundle == task.model.bundle != task.model.given
    shutil.copytree(label_bundle / "bundle", tmp_path / "other")
    weights = tmp_path / "other" / "models" / "model.pt"
    save_tensors({name: value * 2 for name, value in load_tensors(weights).items()}, weights)
    assert ServedModel(task.model.workspace, tmp_path / "other").bundle == tmp_path / "other"


def test_failed_training_keeps_the_model_and_says_why(task, store, monkeypatch):
    monkeypatch.setattr(
        subprocess, "run", lambda *args, stdout, **_: [stdout.write("DataError: bad scan\n"), Done(1)][1]
    )
    with pytest.raises(MedsslError, match="bad scan"):
        task({}, store)
    assert task.stats()["status"] == "failed" and "bad scan" in task.stats()["reason"]
    assert task.model.bundle == task.model.given


class Done:
    def __init__(self, returncode):
        self.returncode = returncode


def test_number_of_epochs_may_be_asked_for(task, store, monkeypatch):
    asked = {}
    monkeypatch.setattr(training, "run_training", lambda source, overlay, folder: asked.update(overlay) or fail())
    with pytest.raises(MedsslError):
        task({"max_epochs": 7}, store)
    assert asked["max_epochs"] == 7 and asked["network_def::widths"] == [4, 8] and asked["labelled"] >= 2
    assert asked["patch_size"] == [64, 64, 16] and asked["start_from"].endswith("model.pt")
    for wrong in (0, -1, "3", True, 1.5):
        with pytest.raises(DataError, match="max_epochs"):
            task({"max_epochs": wrong}, store)


def fail():
    raise MedsslError("enough")


def test_data_set_of_the_training_has_classes_roles_and_links(task, store, monkeypatch):
    monkeypatch.setattr(training, "run_training", lambda *_: fail())
    with pytest.raises(MedsslError):
        task({}, store)
    folder = task.model.workspace.trainings / "0001" / "data"
    cases = {case["id"]: case for case in find_folder(folder)}
    labelled, held_out = (folder / "train.list").read_text().split(), (folder / "test.list").read_text().split()
    assert set(labelled) | set(held_out) == set(cases) and not set(labelled) & set(held_out)
    assert "phantom_003" in labelled and "label" not in cases["phantom_003"]
    labels = [read_volume(case["label"]).array for case in cases.values() if "label" in case]
    assert len(labels) >= 4 and all(set(np.unique(label)) == {0, 1} for label in labels)
    assert json.loads((folder / "dataset.json").read_text())["labels"] == {"background": 0, "kidney": 1}


def test_one_reviewed_study_is_too_few_without_the_models_own_cases(task, scans_to_review, phantom_dir, tmp_path):
    shutil.copytree(scans_to_review, tmp_path / "few")
    store = StudyDatastore(str(tmp_path / "few"), {1: "kidney"})
    submit(store, phantom_dir, tmp_path, 0)
    alone = ReviewTraining(task.model, type(task.recipe)(task.recipe.source, task.recipe.keys, None))
    with pytest.raises(DataError, match="at least two"):
        alone({}, store)


def test_nothing_is_trained_without_a_reviewed_study(task, scans_to_review, tmp_path):
    shutil.copytree(scans_to_review, tmp_path / "unseen")
    with pytest.raises(DataError, match="no reviewed study"):
        task({}, StudyDatastore(str(tmp_path / "unseen"), {1: "kidney"}))


def test_who_is_held_out_stays_so_when_more_is_reviewed(tmp_path):
    file, patients = tmp_path / "held_out.json", [f"p{i:02d}" for i in range(20)]
    held = set()
    for count in range(2, 21):
        roles = _roles(set(patients[:count]), file, seed=3)
        now = {name for name, role in roles.items() if role == HELD_OUT}
        assert held <= now and len(now) == max(1, round(count / 5))
        held = now
    assert _roles(set(patients), tmp_path / "other.json", seed=3) != _roles(
        set(patients), tmp_path / "third.json", seed=4
    )
    assert _roles({"only"}, tmp_path / "one.json", seed=0) == {"only": LABELLED}


def test_studies_of_one_patient_stay_on_one_side(store, tmp_path):
    table = "case,patient\n" + "".join(f"phantom_{i:03d},same\n" for i in (0, 1, 3)) + "phantom_002,other\n"
    (store.root / "patients.csv").write_text(table)
    examples = study_examples(store, tmp_path / "held_out.json")
    roles = {example.id: example.role for example in examples}
    held_out = "phantom_002" if roles["phantom_002"] == HELD_OUT else "phantom_000"
    if held_out == "phantom_000":
        assert roles["phantom_001"] == HELD_OUT and "phantom_003" not in roles and roles["phantom_002"] == LABELLED
    else:
        assert roles["phantom_000"] == roles["phantom_001"] == LABELLED and roles["phantom_003"] == UNLABELLED


def test_cases_of_the_run_that_are_studies_too_are_left_out_and_its_test_cases_are_not_touched(
    trained_run, store, tmp_path
):
    studies = study_examples(store, tmp_path / "held_out.json")
    split = json.loads((trained_run / "split.json").read_text())["cases"]
    own = {f"run-{case['id']}": case["role"] for case in split}
    found = run_examples(trained_run, {1: 1, 2: 1}, studies)
    assert found and not {example.id.removeprefix("run-") for example in found} & {example.id for example in studies}
    assert all(own[example.id] != "test" for example in found)
    assert all((example.role == HELD_OUT) == (own[example.id] == "validation") for example in found)
    assert run_examples(None, {}, studies) == run_examples(tmp_path, {}, studies) == []


def test_unreadable_studies_do_not_stop_a_training(store, tmp_path):
    bad = store.root / "phantom_004.nii.gz"
    bad.write_bytes(bad.read_bytes()[:300])
    assert "phantom_004" not in {example.id for example in study_examples(store, tmp_path / "held_out.json")}


def test_recipe_needs_the_bundle_that_trained_the_model(trained_run, tmp_path):
    with pytest.raises(ConfigError, match="not in the folder of a run"):
        find_recipe(shutil.copytree(trained_run / "bundle", tmp_path / "lonely"))
    shutil.copytree(trained_run / "bundle", tmp_path / "run" / "bundle")
    facts = json.loads((trained_run / "run.json").read_text())
    facts["bundle_root"] = facts["bundle"] = "gone"
    (tmp_path / "run" / "run.json").write_text(json.dumps(facts))
    with pytest.raises(ConfigError, match="'gone'"):
        find_recipe(tmp_path / "run" / "bundle")


def test_recipe_holds_what_the_run_changed_and_nothing_of_its_data(trained_run, bundle_dir):
    recipe = find_recipe(trained_run / "bundle")
    assert recipe.source == bundle_dir and recipe.run == trained_run
    assert recipe.keys["max_epochs"] == 2 and recipe.keys["stride"] == [32, 32, 16]
    assert not {"dataset_dir", "output_dir", "labelled", "run", "training", "network"} & set(recipe.keys)
    assert not any(key.startswith("train::") for key in recipe.keys)


def test_dice_is_the_mean_over_cases_and_structures_and_a_model_without_one_is_worse():
    assert mean_dice([{"dice": 0.5}, {"dice": 0.7}]) == 0.6
    with pytest.raises(DataError, match="no evaluation"):
        mean_dice([])
    assert not is_not_worse(0.5, float("nan")) and is_not_worse(float("nan"), 0.5) is False
