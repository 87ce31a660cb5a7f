"""The command line: tables, exit codes and one clear sentence for every mistake."""

import shutil
import sys

import pytest
from rich.console import Console
from typer.testing import CliRunner

from medssl import cli
from medssl.data.volumes import read_volume, write_nifti


@pytest.fixture
def run():
    return lambda *arguments: CliRunner().invoke(cli.app, [str(argument) for argument in arguments])


def test_check_data_is_silent_about_good_data_and_ends_with_0(run, phantom_dir):
    result = run("check-data", phantom_dir, "--dataset", "phantom")
    assert result.exit_code == 0 and "12 scans, 12 with a label, 0 errors, 0 warnings" in result.stdout


def test_check_data_lists_findings_and_ends_with_1(run, phantom_dir, tmp_path):
    shutil.copytree(phantom_dir / "images", tmp_path / "data" / "images")
    (tmp_path / "data" / "images" / "phantom_004.nii.gz").write_bytes(b"")
    result = run("check-data", tmp_path / "data")
    assert result.exit_code == 1 and "phantom_004" in result.stdout and "1 error, 0 warnings" in result.stdout


@pytest.fixture
def own_folder(phantom_dir, tmp_path):
    """A folder of six scans with labels that has nothing wrong with it."""
    folder = tmp_path / "own"
    for part in ("images", "labels"):
        (folder / part).mkdir(parents=True)
        for number in range(6):
            name = f"phantom_{number:03d}.nii.gz"
            shutil.copy(phantom_dir / part / name, folder / part / f"p{number}.nii.gz")
    return folder


def rename_visits(folder):
    for part in ("images", "labels"):
        for number in range(6):
            (folder / part / f"p{number}.nii.gz").rename(folder / part / f"patient{number // 2}-f{number % 2}.nii.gz")


def name_some_patients(folder):
    (folder / "patients.csv").write_text("case,patient\np0,a\np1,a\n")


def write_odd_ids(folder):
    label = read_volume(folder / "labels" / "p3.nii.gz")
    write_nifti(folder / "labels" / "p3.nii.gz", label.array * 100, label.affine, "uint8")


def break_link(folder):
    (folder / "images" / "p9.nii.gz").symlink_to("/gone/p9.nii.gz")


@pytest.mark.parametrize(
    ("mistake", "parts", "exit_code"),
    [
        (lambda folder: None, ["0 errors, 0 warnings"], 0),
        (rename_visits, ["patient0-f0,patient0", "6 with a label, 0 errors, 1 warning"], 0),
        (name_some_patients, ["names 2 of 6 scans", "0 errors, 1 warning"], 0),
        (write_odd_ids, ["p3", "odd-label-ids", "ids 100", "1 error, 0 warnings"], 1),
        (break_link, ["/gone/p9.nii.gz", "7 scans, 6 with a label, 1 error, 0 warnings"], 1),
    ],
)
def test_check_data_tells_the_mistakes_of_own_folders(run, own_folder, monkeypatch, mistake, parts, exit_code):
    monkeypatch.setattr(cli.data, "console", Console(width=1000))
    mistake(own_folder)
    result = run("check-data", own_folder)
    assert all(part in result.stdout for part in parts), result.stdout
    assert result.exit_code == exit_code and result.stdout.startswith("Checking every scan and label in")


def test_check_data_takes_the_ids_that_dataset_json_names(run, own_folder, monkeypatch):
    monkeypatch.setattr(cli.data, "console", Console(width=1000))
    write_odd_ids(own_folder)
    (own_folder / "dataset.json").write_text('{"labels": {"kidney": 1, "lesion": 2, "other": 100, "more": 200}}')
    assert run("check-data", own_folder).exit_code == 0
    (own_folder / "dataset.json").write_text('{"labels": {"kidney": 1, "lesion": 2}}')
    result = run("check-data", own_folder)
    assert result.exit_code == 1 and "label ids 100" in result.stdout and "expected 0 and 1, 2" in result.stdout


def test_bundles_are_listed_with_what_they_train_within_80_columns(run, bundles_dir, monkeypatch):
    monkeypatch.setattr(cli.bundles, "console", Console(width=80))
    result = run("bundles")
    table = result.stdout
    assert result.exit_code == 0 and "gbdl" in table and "Semi-supervised 3-D segmentation" in table
    assert str(bundles_dir / "gbdl") in "".join(line.strip() for line in table.splitlines())
    assert max(len(line) for line in table.splitlines()) <= 80


def test_path_of_a_bundle_is_printed_alone_and_unwrapped(run, bundles_dir):
    assert run("bundles", "--path", "gbdl").stdout == f"{bundles_dir / 'gbdl'}\n"


def test_bundle_is_copied_and_the_way_to_train_it_is_told(run, tmp_path):
    result = run("bundles", "--copy", "gbdl", tmp_path / "mine")
    assert result.exit_code == 0 and f"medssl train {tmp_path / 'mine'}" in result.stdout
    assert (tmp_path / "mine" / "configs" / "train.json").is_file()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [(("--path", "gdbl"), "Did you mean 'gbdl'"), (("--path", "gbdl", "--copy", "gbdl", "x"), "only one at a time")],
)
def test_bundles_says_what_is_wrong_and_ends_with_1(monkeypatch, capsys, arguments, reason):
    monkeypatch.setattr(sys, "argv", ["medssl", "bundles", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1 and reason in capsys.readouterr().err


def test_check_bundle_accepts_ours_and_refuses_a_hostile_one(run, bundle_dir, tmp_path):
    assert run("check-bundle", bundle_dir).exit_code == 0
    shutil.copytree(bundle_dir, tmp_path / "bundle")
    (tmp_path / "bundle" / "configs" / "evil.json").write_text('{"x": {"_target_": "os.system", "command": "id"}}')
    result = run("check-bundle", tmp_path / "bundle")
    assert result.exit_code == 1 and "os.system" in result.stdout


def test_phantom_writes_the_asked_number(run, tmp_path):
    result = run("phantom", tmp_path / "p", "--count", 2, "--modality", "mr")
    assert result.exit_code == 0 and len(list((tmp_path / "p" / "images").iterdir())) == 2


def test_report_prints_the_table_and_the_path(run, trained_run):
    result = run("report", trained_run)
    assert result.exit_code == 0 and "Dice" in result.stdout and (trained_run / "report.html").is_file()


def test_several_runs_are_compared(run, trained_run, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(trained_run, other)
    facts = (other / "run.json").read_text().replace('"seed": 0', '"seed": 1')
    (other / "run.json").write_text(facts)
    result = run("report", trained_run, other, "--output", tmp_path / "both.html")
    assert result.exit_code == 0 and (tmp_path / "both.html").is_file() and "supervised" in result.stdout


def test_samples_writes_the_table_the_report_draws(run, trained_run, tmp_path):
    folder = shutil.copytree(trained_run, tmp_path / "run")
    result = run("samples", folder, "--values", "1,2", "--cases", 1)
    assert result.exit_code == 0 and len((folder / "samples.csv").read_text().splitlines()) == 1 + 2
    assert "mode exact" in result.stdout and "s per patch" in result.stdout
    assert run("report", folder).exit_code == 0
    assert "Number of samples" in (folder / "report.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["check-data", "no/such/folder"], "no/such/folder"),
        (["check-data", "no/such/folder", "--dataset", "kits19"], "no such folder. Give the folder of the data set"),
        (["check-data", "README.md"], "a file, expected a folder"),
        (["check-data", "docs"], "np_match (a class a picture)"),
        (["check-data", "tests/metrics"], "Give the folder that holds them."),
        (["check-data", ".", "--dataset", "kidneys"], "Known: folder"),
        (["report", "no/such/run"], "no/such/run"),
        (["predict", "a.nii.gz", "out", "--bundle", "no/such/bundle"], "no/such/bundle"),
        (["samples", "no/such/run"], "no/such/run"),
        (["sweep", "gbdl", "--output", "o", "--labelled", "four"], "--labelled 'four': expected whole numbers"),
        (["sweep", "bundles/x", "--output", "o", "--labelled", "4", "phantom"], "--key value"),
    ],
)
def test_mistakes_get_one_sentence_and_exit_code_1(monkeypatch, capsys, arguments, part):
    monkeypatch.setattr(sys, "argv", ["medssl", *arguments])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    message = capsys.readouterr().err
    assert caught.value.code == 1 and part in message and "Traceback" not in message
