import json
import shutil

import pytest

from medssl.core.errors import ConfigError, DataError
from medssl.data.volumes import read_volume, write_nifti
from medssl.review.sources import open_source, source_of_predictions, source_of_run

NEEDS = {"a": 0.1, "b": 0.9}


def test_a_run_gives_its_evaluated_cases_with_their_scans_and_names(make_run, tmp_path):
    source = open_source(make_run(NEEDS))
    assert [case.id for case in source.cases] == ["a", "b"] and not source.failures
    assert source.cases[0].image == str(tmp_path / "scans" / "a.nii.gz")
    assert source.structures == {1: "kidney", 2: "tumour"} and source.window == [-20, 120]


def test_scans_that_have_moved_are_found_where_they_are_now(make_run, tmp_path):
    run = make_run(NEEDS)
    shutil.move(tmp_path / "scans", tmp_path / "moved")
    assert all(case.image is None for case in source_of_run(run).cases)
    source = open_source(tmp_path / "moved", predictions=run)
    assert source.cases[1].image == str(tmp_path / "moved" / "b.nii.gz") and source.name == "small run"


def test_a_run_without_evaluated_cases_is_refused(make_run):
    run = make_run(NEEDS, status="running")
    shutil.rmtree(run / "evaluation")
    with pytest.raises(DataError, match=r"no evaluated cases .status: running"):
        source_of_run(run)


def test_a_run_on_pictures_is_refused(make_run):
    with pytest.raises(ConfigError, match="a run on pictures"):
        source_of_run(make_run({"a": 0.1}, task="classification"))


def test_a_scan_without_prediction_and_one_that_changed_since_are_failures(make_predictions):
    scans, predictions = make_predictions({"a": 0.1, "b": 0.9, "c": 0.5, "d": 0.5})
    (predictions / "b.json").unlink()
    (predictions / "d.json").unlink()
    (predictions / "failures-2-of-2.json").write_text(json.dumps({"d": "d.nii.gz: truncated"}))
    known = read_volume(scans / "c.nii.gz")
    write_nifti(scans / "c.nii.gz", 2 * known.array, known.affine, "float32")
    source = source_of_predictions(scans, predictions)
    assert [case.id for case in source.cases] == ["a"]
    assert "not predicted yet" in source.failures["b"] and "another scan" in source.failures["c"]
    assert source.failures["d"] == "d.nii.gz: truncated"


def test_damaged_records_are_failures_and_a_damaged_list_of_failures_is_named(make_predictions):
    scans, predictions = make_predictions(NEEDS)
    (predictions / "a.json").write_text('{"id": "a", ')
    assert "a.json: not JSON" in source_of_predictions(scans, predictions).failures["a"]
    (predictions / "failures.json").write_text("oops")
    with pytest.raises(DataError, match=r"failures\.json: not the JSON"):
        source_of_predictions(scans, predictions)


def test_a_folder_that_holds_none_of_the_predictions_is_refused(make_predictions, tmp_path):
    scans, _ = make_predictions(NEEDS)
    with pytest.raises(DataError, match="a finished prediction of none of the 2 scans"):
        source_of_predictions(scans, tmp_path / "elsewhere")


def test_what_is_meant_must_be_clear(make_run, make_predictions):
    scans, predictions = make_predictions(NEEDS)
    run = make_run(NEEDS)
    with pytest.raises(ConfigError, match=r"not a run .* give --bundle to predict them, or --predictions"):
        open_source(scans)
    with pytest.raises(ConfigError, match="give one of them"):
        open_source(scans, bundle=run, predictions=predictions)
    with pytest.raises(ConfigError, match="with scans only"):
        open_source(run, predictions=predictions)
    with pytest.raises(ConfigError, match="--samples: for predicting"):
        open_source(run, samples=5)
