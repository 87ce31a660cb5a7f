"""Maps and predictions of real series go through DICOM and come back as they were, also as highdicom reads them."""

import nibabel as nib
import numpy as np
import pydicom
import pytest

from medssl.data import Pipeline, facts_from_json, scans_in
from medssl.data.dicom import read_dicom_stack
from medssl.data.dicom_map import read_parametric_map, write_parametric_map
from medssl.data.dicom_seg import read_segmentation
from medssl.data.volumes import read_header, read_volume
from medssl.data.voxel_grid import Volume, reordered
from medssl.inference import MCDropoutInferer, PredictionEngine, Predictor
from medssl.networks import MCDropoutUNet3D
from medssl.uncertainty.ranking import uncertainty_bands

pytestmark = pytest.mark.realdata

highdicom = pytest.importorskip("highdicom")

BOTH = pytest.mark.parametrize("folder", ["dicom/ct_abdomen", "dicom/mr_hippocampus"], indirect=True)


@BOTH
def test_map_of_a_real_series_comes_back_float_for_float_in_its_place(series, tmp_path):
    header = read_header(series)
    entropy = Volume(np.random.default_rng(0).random(header.shape, dtype=np.float32), header.affine)
    turn = np.array([[2, -1], [0, 1], [1, -1]])
    affine = entropy.affine @ nib.orientations.inv_ornt_aff(turn, entropy.shape)
    write_parametric_map(Volume(nib.apply_orientation(entropy.array, turn), affine), series, tmp_path / "map.dcm")
    found = read_parametric_map(tmp_path / "map.dcm")
    np.testing.assert_array_equal(found.array, entropy.array)
    np.testing.assert_allclose(found.affine, entropy.affine, atol=1e-9)
    read = highdicom.pm.ParametricMap.from_file(tmp_path / "map.dcm")
    volume = read.get_volume(apply_real_world_transform=True)
    placed = reordered(Volume(volume.array, np.diag([-1, -1, 1, 1]) @ volume.affine), entropy)
    np.testing.assert_array_equal(placed.array, entropy.array)
    np.testing.assert_allclose(placed.affine, entropy.affine, atol=1e-6)
    listed = [item.ReferencedSOPInstanceUID for item in read.ReferencedSeriesSequence[0].ReferencedInstanceSequence]
    slices = [pydicom.dcmread(file, stop_before_pixels=True) for file in read_dicom_stack(series).files]
    assert sorted(listed) == sorted(dataset.file_meta.MediaStorageSOPInstanceUID for dataset in slices)


@BOTH
def test_prediction_of_a_real_series_is_written_as_dicom(series, tmp_path, caplog):
    pipeline = Pipeline(facts_from_json("kits19"), slice_size=(96, 96), region_size=(96, 96), patch_size=(96, 96, 16))
    inferer = MCDropoutInferer((96, 96, 16), (96, 96, 16), samples=1)
    predictor, out = Predictor(MCDropoutUNet3D(1, 2, (2, 4)), pipeline, inferer), tmp_path / "out"
    engine = PredictionEngine(predictor, scans_in(series), out, with_dicom=True)
    engine.run()
    assert engine.failures == {}
    stem = out / engine.finished[0]
    seg, entropy = (read_volume(f"{stem}_{kind}.nii.gz").array for kind in ("seg", "entropy"))
    np.testing.assert_array_equal(read_segmentation(f"{stem}_seg.dcm").array, seg)
    np.testing.assert_array_equal(read_parametric_map(f"{stem}_entropy.dcm").array, entropy)
    np.testing.assert_array_equal(read_segmentation(f"{stem}_bands.dcm").array, uncertainty_bands(entropy, 2))
    first = pydicom.dcmread(next(series.iterdir()), stop_before_pixels=True)
    secrets = [str(first.get(name, "")) for name in ("PatientName", "PatientID", "PatientBirthDate")]
    told = caplog.text + (out / f"{stem.name}.json").read_text()
    assert not [secret for secret in secrets if len(secret) > 2 and secret in told]
