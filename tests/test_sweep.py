"""A sweep runs every cell once, goes on after failures, and can be run again."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from medssl.core.errors import ConfigError
from medssl.core.progress import Work
from medssl.sweep import sweep_of_bundle, sweeps_of_file
from medssl.sweep.state import Watch, epoch_of, failure_reason, result_text

ROOT = Path(__file__).parents[1]


@pytest.fixture
def grid(tmp_path):
    return grid_of(tmp_path)


def grid_of(folder, bundle="mcdropout_unet3d", **changes):
    keys = {"overlays": ("bench",), "keys": (("dataset_name", "phantom"),), **changes}
    return sweep_of_bundle(ROOT / "bundles" / bundle, folder, [4, 100], [0, 1], **keys)


@pytest.fixture
def started(monkeypatch):
    """Stands in for the trainings: records each command and finishes its run, unless its name is in `failing`."""
    commands, failing = [], set()

    def run(command, **options):
        commands.append(command)
        folder = Path(command[command.index("--output_dir") + 1])
        status = 1 if folder.name in failing else 0
        log = options["stdout"]
        log.write("training: epoch 1/2  loss 0.5000  1.0 s\n")
        if status:
            log.write("DataError: scan_7.nii.gz: 0 bytes. Copy it again.\n\n2026-11-18 05:44:04 - INFO - bye\n")
        (folder / "run.json").write_text(json.dumps({"status": "finished" if status == 0 else "failed"}))
        return subprocess.CompletedProcess(command, status)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr("medssl.bundle.rehearsal.rehearse", lambda run_id, files, keys: None)
    return commands, failing


def test_every_combination_is_trained_in_its_own_folder_with_all_keys(grid, started):
    folders = grid.run()
    assert [folder.name for folder in folders] == [
        f"mcdropout_unet3d_{labelled}_seed{seed}" for seed in (0, 1) for labelled in (4, 100)
    ]
    command = started[0][0]
    assert command[1:5] == ["-m", "monai.bundle", "run", "training"]
    configs = command[command.index("--config_file") + 1]
    assert "configs/train.json" in configs and "configs/bench.json" in configs
    pairs = dict(zip(command[7::2], command[8::2], strict=True))
    assert pairs["--dataset_name"] == "phantom" and pairs["--labelled"] == "4" and pairs["--resume"] == "true"


def test_finished_runs_are_not_trained_again(grid, started):
    grid.run()
    started[0].clear()
    assert len(grid.run(jobs=2)) == 4 and started[0] == []


def test_other_keys_for_the_same_folder_are_refused(grid, started, tmp_path):
    grid.run()
    with pytest.raises(ConfigError, match="other keys"):
        grid_of(tmp_path, overlays=("smoke",)).run()


def test_variants_are_rows_and_every_seed_is_finished_for_all_rows_first(started, tmp_path):
    folders = grid_of(tmp_path, "gbdl", variants=["gbdl", "ic"]).run()
    assert [folder.name for folder in folders][:4] == ["gbdl_4_seed0", "ic_4_seed0", "gbdl_100_seed0", "ic_100_seed0"]
    assert [command[command.index("--variant") + 1] for command in started[0][:2]] == ["gbdl", "ic"]


def test_methods_are_rows_of_a_bundle_that_has_them(started, tmp_path):
    grid_of(tmp_path, "teacher_student", variants=["mean_teacher", "supervised"]).run()
    assert [command[command.index("--method") + 1] for command in started[0][:2]] == ["mean_teacher", "supervised"]


def test_variants_of_a_bundle_without_any_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="it has no variants"):
        grid_of(tmp_path, variants=["gbdl"])


def test_keys_are_varied_one_at_a_time(started, tmp_path):
    folders = grid_of(tmp_path, vary=["kl_weight=0.005,0.5", "pseudo_samples=1"]).run()
    assert [folder.name for folder in folders][:3] == [
        "kl_weight_0.005_4_seed0",
        "kl_weight_0.5_4_seed0",
        "pseudo_samples_1_4_seed0",
    ]
    assert "--kl_weight" not in started[0][2] and "--pseudo_samples" not in started[0][0]
    with pytest.raises(ConfigError, match="'kl_weight': expected a key and its values"):
        grid_of(tmp_path, vary=["kl_weight"])


def test_file_of_grids_names_rows_of_several_bundles(started, tmp_path):
    rows = {
        "supervised": {"bundle": "bundles/mcdropout_unet3d", "overlays": ["bench"], "keys": {"max_epochs": 6}},
        "gbdl": {"bundle": "bundles/gbdl", "keys": {"max_epochs": 12}},
    }
    grids = {
        "small": {"labelled": [1], "seeds": [3], "rows": ["supervised", "gbdl"], "keys": {"dataset_dir": "data"}},
        "other": {"labelled": [2], "seeds": [4], "rows": ["gbdl"]},
    }
    file = tmp_path / "grids.json"
    file.write_text(json.dumps({"keys": {"samples": 5, "stride": [8, 8, 4]}, "rows": rows, "grids": grids}))
    folders = [folder for sweep in sweeps_of_file(file, tmp_path, (("jitter", "0"),)) for folder in sweep.run()]
    names = ["small/supervised_1_seed3", "small/gbdl_1_seed3", "other/gbdl_2_seed4"]
    assert folders == [tmp_path / name for name in names]
    first, second, third = (dict(zip(command[7::2], command[8::2], strict=True)) for command in started[0])
    assert first["--max_epochs"] == "6" and second["--max_epochs"] == "12" and "--dataset_dir" not in third
    assert second["--bundle_root"] == "bundles/gbdl" and second["--dataset_dir"] == "data"
    assert third["--samples"] == "5" and third["--stride"] == "[8, 8, 4]" and third["--jitter"] == "0"


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"rows": {"a": {}}, "grids": {}}', '{"rows": {}, "grids": {"g": {"rows": ["a"]}}}']
)
def test_file_without_grids_is_named(content, tmp_path):
    file = tmp_path / "grids.json"
    file.write_text(content)
    with pytest.raises(ConfigError, match=r"grids\.json: not a file of grids"):
        sweeps_of_file(file, tmp_path)


def test_a_failure_is_named_and_only_that_cell_is_left(grid, started):
    started[1].add("mcdropout_unet3d_4_seed1")
    with pytest.raises(ConfigError, match=r"1 of 4 trainings failed; see .*4_seed1/training\.log"):
        grid.run()
    started[0].clear()
    started[1].clear()
    grid.run()
    assert [Path(command[command.index("--output_dir") + 1]).name for command in started[0]] == [
        "mcdropout_unet3d_4_seed1"
    ]


def test_each_run_says_when_it_begins_and_ends_and_why_it_failed(grid, started, capsys):
    started[1].add("mcdropout_unet3d_4_seed1")
    with pytest.raises(ConfigError):
        grid.run()
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [
        "sweep: 4 trainings to do",
        "mcdropout_unet3d_4_seed0: begins",
    ]
    assert lines[2] == "mcdropout_unet3d_4_seed0: finished after 0 s"
    reason = "DataError: scan_7.nii.gz: 0 bytes. Copy it again."
    assert f"mcdropout_unet3d_4_seed1: FAILED after 0 s: {reason}" in lines


def test_overlays_bundles_and_output_are_checked_before_the_first_training(started, tmp_path):
    with pytest.raises(ConfigError, match=r"overlay 'smok' is unknown\. Did you mean 'smoke'\?"):
        grid_of(tmp_path / "out", "gbdl", overlays=("smok",)).run()
    with pytest.raises(ConfigError, match=r"bundle '.*gbd' is unknown"):
        grid_of(tmp_path / "out", "gbd").run()
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="file: is a file, expected the folder of the run"):
        grid_of(tmp_path / "file").run()
    assert started[0] == [] and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("bundle", "changes", "text"),
    [
        ("gbdl", {"keys": (("lerning_rate", "0.1"),)}, "key 'lerning_rate' is unknown. Did you mean 'learning_rate'?"),
        ("gbdl", {"vary": ["kl_weight=0.005,much"]}, "kl_weight 'much': expected a number"),
        ("np_match", {"keys": (("max_epochs", "0"),)}, "max_epochs 0: expected at least 1"),
    ],
)
def test_keys_of_every_row_are_checked_before_the_first_training(tmp_path, monkeypatch, bundle, changes, text, capsys):
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("nothing may be trained"))
    hook = sys.excepthook
    with pytest.raises(ConfigError) as caught:
        grid_of(tmp_path / "out", bundle, **changes).run()
    assert str(caught.value) == text or str(caught.value).startswith(text)
    assert not (tmp_path / "out").exists() and sys.excepthook is hook
    out, err = capsys.readouterr()
    assert out == "sweep: 4 trainings to do\n" or out.startswith("sweep: 8 trainings")
    assert "Traceback" not in err


def test_state_of_a_run_is_read_from_its_log(tmp_path):
    assert epoch_of(tmp_path) is None
    log = tmp_path / "training.log"
    log.write_text("medssl 0.1.0: training\n")
    assert epoch_of(tmp_path) is None
    log.write_text("training: epoch 3/10  loss 0.4  2.0 s\nevaluation: a  3.0 s\n")
    assert epoch_of(tmp_path) == (3, 10)
    log.write_text("stage latent: 4 of 12 epochs, epoch 5, loss 0.3: 7 of 50 steps (35 s, about 4 min left)\n")
    assert epoch_of(tmp_path) == (4, 12)


def test_a_sweep_shows_how_far_each_run_is(tmp_path):
    for name, line in (("a_4_seed0", "training: epoch 3/10  loss 0.4"), ("b_4_seed0", "importing")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "training.log").write_text(line)
    piece = Work("sweep", 4, "trainings")
    watch = Watch(piece, "sweep")
    watch.running = [tmp_path / "a_4_seed0", tmp_path / "b_4_seed0"]
    watch.look()
    assert piece.text() == "sweep, a_4_seed0 epoch 3 of 10, b_4_seed0: 0 of 4 trainings" and piece.part == 0.3


def test_a_run_that_a_signal_ended_says_so(tmp_path):
    assert failure_reason(tmp_path, -9) == "signal 9 ended it. Memory may have run out."
    assert failure_reason(tmp_path, 1) == f"see {tmp_path / 'training.log'}"


def test_result_of_a_finished_run_is_its_main_metric(trained_run, tmp_path):
    assert re.fullmatch(r", Dice 0\.\d{3}", result_text(trained_run))
    assert result_text(tmp_path) == ""
