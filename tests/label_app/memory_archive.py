"""A DICOMweb archive in memory, and what people put into it."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pydicom
from pydicom.dataset import Dataset

from medssl.data.dicom_seg import write_segmentation
from medssl.data.volumes import write_nifti


class Archive:
    """A DICOMweb client and its archive in one."""

    base_url = "http://127.0.0.1/dicom-web"

    def __init__(self):
        self.files, self.fail_after, self.faults, self.downloads = [], None, {}, []

    def add(self, folder):
        self.files += [pydicom.dcmread(file) for file in sorted(Path(folder).iterdir())]

    def search_for_series(self, search_filters):
        found = {str(file.SeriesInstanceUID): file for file in self.files if fits(file, search_filters)}
        sizes = Counter(str(file.SeriesInstanceUID) for file in self.files)
        return [json.loads(brief(file, sizes[uid]).to_json()) for uid, file in found.items()]

    def retrieve_series(self, study, series):
        self.downloads.append(series)
        if series in self.faults:
            raise self.faults[series]
        chosen = [file for file in self.files if file.SeriesInstanceUID == series]
        for number, file in enumerate(chosen):
            if number == self.fail_after:
                raise ConnectionError("the archive is away")
            yield file

    def retrieve_series_metadata(self, study, series):
        if series in self.faults:
            raise self.faults[series]
        file = next(file for file in self.files if file.SeriesInstanceUID == series)
        return [json.loads(file.to_json(bulk_data_threshold=10**9, bulk_data_element_handler=lambda _: ""))]

    def store_instances(self, datasets):
        self.files += datasets
        return Dataset()


def fits(file, filters):
    return all(str(file.get(name)) == value for name, value in filters.items())


def brief(file, size):
    found = Dataset()
    found.NumberOfSeriesRelatedInstances = size
    for name in ("SeriesInstanceUID", "StudyInstanceUID", "Modality", "PatientID", "PatientName", "PatientBirthDate"):
        if name in file:
            found[name] = file[name]
    return found


def put_segmentation(archive, study, folder, structures):
    """What a person drew of the study in another program, its series."""
    folder.mkdir()
    write_segmentation(study.label, study.folder, folder / "1.dcm", structures, algorithm=None)
    archive.add(folder)
    archive.files[-1].ContentTime = f"{len(archive.files):06d}"
    return str(archive.files[-1].SeriesInstanceUID)


def submitted(study, folder):
    write_nifti(folder / "label.nii.gz", study.label.array, study.label.affine, np.uint8)
    return str(folder / "label.nii.gz")
