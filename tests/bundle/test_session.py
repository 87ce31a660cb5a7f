"""What surrounds a training: where it writes, and what its user reads when it fails."""

import logging
import sys
from pathlib import Path

import pytest
import torch
from monai.bundle import ConfigParser
from torch import nn

from medssl.bundle import check_scans
from medssl.bundle.session import Session, SessionOptions, default_run_name, open_run
from medssl.core.errors import ConfigError, DataError
from medssl.data import Pipeline, Split, dataset_facts
from medssl.engine import RunFolder, explain_errors
from medssl.engine.tracking import NoTracker
from medssl.methods.supervised import Supervised
from medssl.report.finish import finish_run

CASES = [{"id": "a", "patient": "a", "role": "labelled"}, {"id": "b", "patient": "b", "role": "test"}]


def refuse(**_) -> None:
    raise DataError("scan.nii.gz: 2-D. Expected a volume.")


@pytest.fixture
def hook(monkeypatch):
    """The exception hook that explain_errors installs; everything it changed comes back."""
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    level = logging.getLogger("ignite").level
    explain_errors()
    yield sys.excepthook
    logging.getLogger("ignite").setLevel(level)


def report(hook, error: BaseException) -> None:
    hook(type(error), error, error.__traceback__)


def session(**options):
    split = Split(CASES, {"dataset": "phantom"})
    pipeline = Pipeline(dataset_facts("phantom"))
    linear = nn.Linear(3, 2)
    asked = SessionOptions(**options)
    return Session("mcdropout_unet3d", Supervised, pipeline, split, linear, "cpu", asked, 1, "phantom_8_seed1")


def test_folder_is_named_after_bundle_data_labels_and_seed(tmp_path, monkeypatch):
    assert default_run_name("mcdropout_unet3d", "phantom", 8, 1) == "phantom_8_seed1"
    assert default_run_name("gbdl", "kits19", None, 0) == "kits19_preset_seed0"
    assert default_run_name("gbdl", "kits19", 4, 0, "gbdl") == "kits19_4_seed0"
    assert default_run_name("gbdl", "kits19", 4, 0, "lrl_only") == "lrl_only_kits19_4_seed0"
    monkeypatch.chdir(tmp_path)
    assert str(session().folder.path) == "runs/mcdropout_unet3d/phantom_8_seed1"
    assert session(output_dir=str(tmp_path / "mine")).folder.path == tmp_path / "mine"


def test_folder_of_a_run_by_lists_is_named_after_them():
    for given in ("lists/183", "lists/183/", Path("lists") / "183"):
        name = default_run_name("np_semiseg", "voc", 0.0625, 0, "u2pl_np", given)
        assert name == "u2pl_np_voc_list_183_seed0"


def test_run_is_called_after_its_method_unless_it_has_a_title(tmp_path):
    plain = session(output_dir=str(tmp_path / "plain")).folder.facts()
    titled = session(output_dir=str(tmp_path / "titled"), title="supervised, twice").folder.facts()
    assert plain["method"] == "supervised" and titled["method"] == "supervised, twice"
    for facts in (plain, titled):
        assert facts["method_facts"]["title"] == "supervised"
        assert facts["method_facts"]["learns_from_unlabelled"] is False


def test_run_without_tracking_has_no_tracker_and_amp_needs_a_gpu(tmp_path):
    untracked = session(output_dir=str(tmp_path / "run"), mlflow=False)
    assert isinstance(untracked.tracker, NoTracker)
    assert untracked.amp is torch.cuda.is_available()
    assert session(amp=True).amp is True


@pytest.mark.parametrize("config", [{"_target_": "here", "a": 1}, "$here()"])
def test_error_of_medssl_within_monais_wrappers_is_one_clear_text(hook, capsys, config):
    parser = ConfigParser({"bad": config if isinstance(config, str) else {**config, "_target_": refuse}})
    parser.globals["here"] = refuse
    with pytest.raises(RuntimeError) as caught:
        parser.get_parsed_content("bad")
    report(hook, caught.value)
    assert capsys.readouterr().err == "DataError: scan.nii.gz: 2-D. Expected a volume.\n"


def test_any_other_error_is_one_sentence_too(hook, capsys):
    with pytest.raises(ZeroDivisionError) as caught:
        _ = 1 / 0
    report(hook, caught.value)
    text = "ZeroDivisionError: division by zero. (--debug true shows where it happened)\n"
    assert capsys.readouterr().err == text


def told_of_a_refusal(given, capsys, monkeypatch):
    """What a training with these arguments writes when it refuses a scan."""
    monkeypatch.setattr(sys, "argv", ["monai.bundle", "run", "training", *given])
    explain_errors()
    with pytest.raises(DataError) as caught:
        refuse()
    report(sys.excepthook, caught.value)
    return capsys.readouterr().err


@pytest.mark.parametrize("given", [["--debug", "true"], ["--debug=1"], ["--debug"], ["--debug", "--seed", "1"]])
def test_with_debug_the_traceback_stands_before_the_sentence_of_any_error(hook, capsys, monkeypatch, given):
    err = told_of_a_refusal(given, capsys, monkeypatch)
    assert err.startswith("Traceback") and err.endswith("\nDataError: scan.nii.gz: 2-D. Expected a volume.\n")


@pytest.mark.parametrize("given", [[], ["--debug", "false"], ["--debug=no", "--seed", "1"]])
def test_without_debug_there_is_no_traceback(hook, capsys, monkeypatch, given):
    assert "Traceback" not in told_of_a_refusal(given, capsys, monkeypatch)


def test_ctrl_c_ends_with_a_sentence_and_exit_code_130(hook, capsys):
    with pytest.raises(SystemExit) as caught:
        report(hook, KeyboardInterrupt("Stopped in epoch 3 of 9."))
    assert caught.value.code == 130 and capsys.readouterr().err == "Stopped in epoch 3 of 9.\n"


def test_resume_where_no_run_is_says_so_in_a_line(tmp_path, capsys):
    open_at(tmp_path / "run", resume=True).finish()
    assert capsys.readouterr().out == f"nothing to resume in {tmp_path / 'run'}: a new run begins\n"
    open_at(tmp_path / "run", resume=True).finish()
    assert capsys.readouterr().out == ""


def test_bad_scans_stop_a_training_and_good_ones_are_read_once(phantom_dir, tmp_path, capsys):
    files = sorted((phantom_dir / "images").glob("*.nii.gz"))[:2]
    cases = [{"id": file.name, "image": str(file), "label": str(phantom_dir / "labels" / file.name)} for file in files]
    check_scans(cases, [0, 1, 2], tmp_path)
    assert "checking 2 cases" in capsys.readouterr().out and (tmp_path / "data_checks.json").is_file()
    damaged = tmp_path / files[0].name
    damaged.write_bytes(files[0].read_bytes()[:500])
    with pytest.raises(DataError, match=files[0].name):
        check_scans([{**cases[0], "image": str(damaged)}], [0, 1, 2], tmp_path)


def open_at(path, resume: bool = False, cases=CASES) -> RunFolder:
    pipeline = Pipeline(dataset_facts("phantom"))
    split = Split(cases, {"dataset": "phantom"})
    facts = {"bundle": "mcdropout_unet3d", "method": "supervised", **pipeline.run_facts(), "seed": 5}
    return open_run(path, facts, split, nn.Linear(3, 2), resume)


def test_opened_run_has_its_facts_and_split(tmp_path):
    folder = open_at(tmp_path / "run")
    facts = folder.facts()
    assert (facts["name"], facts["seed"], facts["parameters"], facts["labelled"]) == ("run", 5, 8, 1)
    assert facts["split_hash"] == Split(CASES, {}).hash and (tmp_path / "run" / "split.json").is_file()
    assert facts["status"] == "running" and facts["config"] == {}


def test_resume_with_another_split_leaves_the_run_as_it_is(tmp_path):
    open_at(tmp_path / "run").finish()
    before = (tmp_path / "run" / "run.json").read_text()
    others = [{**CASES[0], "id": "c", "patient": "c"}, CASES[1]]
    with pytest.raises(ConfigError, match=r"split\.json: holds split"):
        open_at(tmp_path / "run", resume=True, cases=others)
    assert (tmp_path / "run" / "run.json").read_text() == before
    assert open_at(tmp_path / "run", resume=True).resumed, "and nobody holds its lock"


def test_finished_run_names_its_newest_checkpoint(tmp_path):
    folder = open_at(tmp_path / "run")
    (folder.path / "checkpoints").mkdir()
    for epoch in ("9999", "10000"):
        (folder.path / "checkpoints" / f"epoch_{epoch}.pt").touch()
    finish_run(folder, NoTracker())
    facts = folder.facts()
    assert facts["status"] == "finished" and facts["checkpoint"] == "checkpoints/epoch_10000.pt"
