"""DICOM SEG files of what a model answers: structures in the viewer's colours, bands of uncertainty in their own."""

import numpy as np
import pydicom
import pytest
from label_app.dicom_studies import write_study

from medssl.data.dicom_seg import read_segmentation
from medssl.data.volumes import write_nifti
from medssl.data.voxel_grid import reordered
from medssl.uncertainty.ranking import BANDS

pytest.importorskip("monailabel", reason="needs pip install 'medssl[label]'")
import medssl.label_app.shim.sitecustomize  # noqa: F401, I001
from fastapi import BackgroundTasks, FastAPI
from fastapi.testclient import TestClient
from monailabel.endpoints import infer

from medssl.core.errors import DataError
from medssl.label_app.result_files import removing_segmentations, segmentation_file


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return write_study(tmp_path_factory.mktemp("series"), 20)


@pytest.mark.parametrize("kind", ["structures", "bands"])
def test_segments_are_those_of_the_label_and_bands_have_their_colours(kind, study, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    names = BANDS if kind == "bands" else {1: "kidney", 2: "lesion"}
    write_nifti(tmp_path / "label.nii.gz", study.label.array, study.label.affine, np.uint8)
    told = [{"name": name, "idx": number} for number, name in names.items()]
    file = segmentation_file(str(study.folder), str(tmp_path / "label.nii.gz"), told)
    assert np.array_equal(reordered(read_segmentation(file), study.label).array, study.label.array)
    dataset = pydicom.dcmread(file)
    assert [segment.SegmentLabel for segment in dataset.SegmentSequence] == list(names.values())
    coloured = ["RecommendedDisplayCIELabValue" in segment for segment in dataset.SegmentSequence]
    assert coloured == [kind == "bands"] * len(names)
    assert (dataset.SeriesDescription == "Uncertainty bands") == (kind == "bands")


def test_files_that_were_sent_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    app, send_response = FastAPI(), removing_segmentations(infer.send_response)

    @app.get("/")
    def answer(background_tasks: BackgroundTasks):
        for name in ("label.nii.gz", "seg.dcm"):
            (tmp_path / name).write_bytes(b"content")
        result = {"file": str(tmp_path / "label.nii.gz"), "dicom_seg": str(tmp_path / "seg.dcm"), "params": {}}
        return send_response(None, result, "dicom_seg", background_tasks)

    assert TestClient(app).get("/").content == b"content"
    assert list(tmp_path.iterdir()) == []


def test_segmentation_that_cannot_be_written_leaves_no_file(study, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    write_nifti(tmp_path / "label.nii.gz", np.ones((2, 2, 2)), np.eye(4), np.uint8)
    with pytest.raises(DataError):
        segmentation_file(str(study.folder), str(tmp_path / "label.nii.gz"), [{"name": "kidney", "idx": 1}])
    assert [path.name for path in tmp_path.iterdir()] == ["label.nii.gz"]
