"""`medssl review` from end to end: on a run, on scans it predicts, on predictions made before, on DICOM series."""

import csv
import shutil
import sys

import pytest
from label_app.dicom_studies import PATIENT, write_study
from typer.testing import CliRunner

from medssl import cli


def review(*arguments):
    return CliRunner().invoke(cli.app, ["review", *map(str, arguments)])


def worklist(folder):
    with (folder / "worklist.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def scans(phantom_dir, tmp_path):
    """Three scans, the second one cut off."""
    folder = tmp_path / "scans"
    folder.mkdir()
    for index in range(3):
        shutil.copy(phantom_dir / "images" / f"phantom_{index:03d}.nii.gz", folder)
    bad = folder / "phantom_001.nii.gz"
    bad.write_bytes(bad.read_bytes()[:900])
    return folder


def test_a_trained_run_is_reviewed_into_its_own_folder(trained_run, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(trained_run, run)
    result = review(run, "--budget", "1h")
    assert result.exit_code == 0, result.output
    rows = worklist(run / "review")
    assert [float(row["need"]) for row in rows] == sorted((float(row["need"]) for row in rows), reverse=True)
    assert {row["case"] for row in rows} == {
        file.name.removesuffix("_seg.nii.gz") for file in (run / "evaluation" / "predictions").glob("*_seg.nii.gz")
    }
    page = (run / "review" / "review.html").read_text()
    assert all(row["case"] in page and row["case"] in result.output for row in rows) and "kidney" in page


def test_scans_are_predicted_once_and_a_failed_one_comes_first(trained_run, scans, tmp_path):
    arguments = (scans, "--bundle", trained_run, "--samples", 1, "--output", tmp_path / "out")
    result = review(*arguments)
    assert result.exit_code == 3, result.output
    rows = worklist(tmp_path / "out")
    assert [row["rank"] for row in rows] == ["1", "2", "3"] and rows[0]["case"] == "phantom_001"
    assert rows[0]["note"].startswith("failed: ") and str(tmp_path) not in rows[0]["note"]
    made = {file: file.stat().st_mtime_ns for file in (tmp_path / "out" / "predictions").glob("*.nii.gz")}
    assert len(made) == 4 and review(*arguments).exit_code == 3
    assert made == {file: file.stat().st_mtime_ns for file in made}
    again = review(scans, "--predictions", tmp_path / "out" / "predictions", "--output", tmp_path / "again")
    assert again.exit_code == 3
    assert worklist(tmp_path / "again") == rows


def test_nothing_of_a_patient_leaves_the_dicom_files(trained_run, tmp_path):
    studies = [write_study(tmp_path / "studies", index) for index in (0, 1)]
    (studies[1].folder / "012.dcm").unlink()
    out = tmp_path / "out"
    result = review(studies[0].folder.parent, "--bundle", trained_run, "--samples", 1, "--output", out)
    failed, good = worklist(out)
    assert (failed["case"], good["case"], good["plane"]) == ("study_1", "study_0", "axial")
    assert "missing slices" in failed["note"]
    texts = [result.output, *(file.read_text() for file in out.rglob("*") if file.suffix in (".csv", ".html", ".json"))]
    secrets = [*PATIENT.values(), *(uid for study in studies for uid in (study.uid, study.series_uid))]
    assert len(texts) >= 5 and not [secret for secret in secrets for text in texts if secret in text]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["no/such/folder"], "not a run (no run.json)"),
        (["no/such/folder", "--predictions", "x"], "no/such/folder"),
        ([".", "--budget", "soon"], "budget 'soon'"),
        ([".", "--budget", ""], "budget ''"),
        ([".", "--strategy", "oldest"], "strategy 'oldest'"),
        ([".", "--structure", "kidney"], "looks at all of them"),
        ([".", "--open-seconds", "-1"], "open_seconds -1.0"),
    ],
)
def test_mistakes_get_one_sentence_before_anything_is_done(monkeypatch, capsys, tmp_path, arguments, part):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["medssl", "review", *arguments])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    message = capsys.readouterr().err
    assert caught.value.code == 1 and part in message and "Traceback" not in message
    assert not list(tmp_path.iterdir())
