"""Real scans of every kind are found, checked and predicted; training runs on them through the bundle."""

import csv

import nibabel as nib
import numpy as np
import pytest

from medssl.bundle import run_bundle
from medssl.data import Pipeline, check_cases, facts_from_json, open_dataset, scans_in, split_cases
from medssl.inference import MCDropoutInferer, PredictionEngine, Predictor, load_predictor
from medssl.networks import MCDropoutUNet3D

pytestmark = pytest.mark.realdata


def test_left_atrium_is_found_checked_and_predicted(shared_data, tmp_path):
    source = open_dataset("left_atrium", shared_data / "left_atrium")
    split = split_cases(source, labelled=8, lists_dir=shared_data / "left_atrium")
    assert split.counts == {"labelled": 8, "unlabelled": 40, "validation": 0, "test": 20}
    listed = (shared_data / "left_atrium" / "train.list").read_text().split()[:8]
    assert {case["id"] for case in split.role("labelled")} == set(listed)
    case = split.role("test")[0]
    assert check_cases([case], source.facts.label_ids) == []
    pipeline = Pipeline(source.facts, patch_size=(64, 64, 32))
    inferer = MCDropoutInferer((64, 64, 32), (64, 64, 32), samples=1)
    engine = PredictionEngine(Predictor(MCDropoutUNet3D(1, 2, (2, 4)), pipeline, inferer), [case], tmp_path)
    engine.run()
    assert engine.failures == {}
    assert nib.load(tmp_path / f"{case['id']}_seg.nii.gz").header.get_zooms() == pytest.approx([0.625] * 3)


def test_ct_is_predicted_on_its_own_grid(shared_data, trained_run, tmp_path):
    engine = PredictionEngine(
        load_predictor(trained_run, samples=1), scans_in(shared_data / "ct" / "example_ct_sm.nii.gz"), tmp_path
    )
    engine.run()
    scan, entropy = (nib.load(p) for p in (shared_data / "ct" / "example_ct_sm.nii.gz", *tmp_path.glob("*_entropy*")))
    assert engine.failures == {} and entropy.shape == scan.shape
    assert np.allclose(entropy.affine, scan.affine, atol=1e-3)


@pytest.mark.parametrize("series", ["ct_abdomen", "mr_hippocampus"])
def test_dicom_series_is_predicted(shared_data, tmp_path, series):
    cases = scans_in(shared_data / "dicom" / series)
    assert [case["id"] for case in cases] == [series]
    pipeline = Pipeline(facts_from_json("kits19"), slice_size=(96, 96), region_size=(96, 96), patch_size=(96, 96, 16))
    inferer = MCDropoutInferer((96, 96, 16), (96, 96, 16), samples=1)
    engine = PredictionEngine(Predictor(MCDropoutUNet3D(1, 2, (2, 4)), pipeline, inferer), cases, tmp_path)
    engine.run()
    assert engine.failures == {} and (tmp_path / f"{series}_seg.nii.gz").is_file()


def test_no_patient_data_reach_the_outputs(shared_data, trained_run, tmp_path):
    import pydicom

    cases = scans_in(shared_data / "dicom" / "mr_hippocampus")
    PredictionEngine(load_predictor(trained_run, samples=1), cases, tmp_path).run()
    first = pydicom.dcmread(next((shared_data / "dicom" / "mr_hippocampus").iterdir()), stop_before_pixels=True)
    secrets = [str(first.get(name, "")) for name in ("PatientName", "PatientID", "PatientBirthDate")]
    written = b"".join(p.read_bytes() for p in tmp_path.iterdir() if p.suffix == ".json")
    assert not any(secret.encode() in written for secret in secrets if secret)


def test_hippocampus_trains_through_the_documented_command(shared_data, bundle_dir, tmp_path):
    run_bundle(
        run_id="training",
        config_files=[str(bundle_dir / "configs" / name) for name in ("train.json", "smoke.json")],
        bundle_root=str(bundle_dir),
        dataset_name="hippocampus",
        dataset_dir=str(shared_data / "hippocampus"),
        labelled=4,
        unlabelled=2,
        validation=1,
        test=2,
        output_dir=str(tmp_path / "run"),
        mlflow=False,
    )
    rows = list(csv.DictReader((tmp_path / "run" / "evaluation" / "per_case.csv").open()))
    assert {row["structure"] for row in rows} == {"anterior", "posterior"} and len(rows) == 4
