"""Shared by the tests on real scans."""

from pathlib import Path

import pydicom
import pytest
from pydicom.uid import generate_uid


@pytest.fixture
def folder(shared_data: Path, request: pytest.FixtureRequest) -> Path:
    """The folder of real data that a test asks for by name; the test is skipped where it is missing."""
    path = shared_data / request.param
    if not path.is_dir():
        pytest.skip(f"{path} is not there")
    return path


@pytest.fixture
def series(folder: Path, tmp_path: Path) -> Path:
    """The series of the folder; where an anonymiser has emptied the UIDs of study and series, a copy that has some."""
    study, uid = generate_uid(), generate_uid()
    if pydicom.dcmread(next(folder.iterdir()), stop_before_pixels=True).get("StudyInstanceUID"):
        return folder
    (tmp_path / "series").mkdir()
    for file in folder.iterdir():
        dataset = pydicom.dcmread(file)
        dataset.StudyInstanceUID, dataset.SeriesInstanceUID = study, uid
        dataset.save_as(tmp_path / "series" / file.name)
    return tmp_path / "series"
