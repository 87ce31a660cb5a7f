"""Phantom scans as CT studies, one series each, as an archive would hold them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import CTImageStorage, ExplicitVRLittleEndian, generate_uid

from medssl.data.phantom import draw_phantom
from medssl.data.voxel_grid import LPS_TO_RAS, Volume

PATIENT = {"PatientName": "Secret^Name", "PatientID": "SECRET-ID", "PatientBirthDate": "19010203"}


@dataclass(frozen=True, eq=False)
class Study:
    """A study of one series: its UIDs, the folder of its files, and what the phantom knows about it."""

    uid: str
    series_uid: str
    folder: Path
    scan: Volume
    label: Volume


def write_study(folder: Path, index: int, *, coronal: bool = False) -> Study:
    """Phantom scan number `index` as a CT series below `folder`, in axial or coronal slices.

    The files are named against the order of the slices. Every study has another patient id, that begins SECRET-ID.
    """
    phantom = draw_phantom(index)
    scan, label = Volume(phantom.image, phantom.affine), Volume(phantom.label, phantom.affine)
    if coronal:
        scan, label = _coronal(scan), _coronal(label)
    study = Study(generate_uid(), generate_uid(), folder / f"study_{index}", scan, label)
    study.folder.mkdir(parents=True)
    frame_of_reference, depth = generate_uid(), scan.shape[2]
    for number in range(depth):
        dataset = _slice(scan, number)
        dataset.StudyInstanceUID, dataset.SeriesInstanceUID = study.uid, study.series_uid
        dataset.FrameOfReferenceUID = frame_of_reference
        dataset.PatientID = f"{PATIENT['PatientID']}-{index}"
        dataset.save_as(study.folder / f"{depth - number:03d}.dcm", enforce_file_format=True)
    return study


def _coronal(axial: Volume) -> Volume:
    """The same voxels in the order of coronal slices: columns to the left, rows downwards, slices to the back."""
    array, affine = axial.array[:, :, ::-1].transpose(0, 2, 1), axial.affine.copy()
    affine[:3, 3] += affine[:3, 2] * (axial.shape[2] - 1)
    affine[:3, 1], affine[:3, 2] = -axial.affine[:3, 2], axial.affine[:3, 1]
    return Volume(array, affine)


def _slice(scan: Volume, number: int) -> Dataset:
    affine = LPS_TO_RAS @ scan.affine
    spacing_mm = np.linalg.norm(affine[:3, :3], axis=0)
    dataset = Dataset()
    dataset.file_meta = FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    dataset.SOPClassUID, dataset.SOPInstanceUID = CTImageStorage, generate_uid()
    dataset.ImageType, dataset.Modality, dataset.Manufacturer = ["ORIGINAL", "PRIMARY", "AXIAL"], "CT", "medssl"
    dataset.StudyDate, dataset.StudyTime, dataset.StudyID, dataset.AccessionNumber = "20200102", "030405", "1", "1"
    dataset.SeriesNumber, dataset.SeriesDescription, dataset.InstanceNumber = 1, "phantom", number + 1
    dataset.PatientSex, dataset.ReferringPhysicianName, dataset.PositionReferenceIndicator = "O", "", ""
    for name, value in PATIENT.items():
        setattr(dataset, name, value)
    dataset.Rows, dataset.Columns = scan.shape[1], scan.shape[0]
    dataset.PixelSpacing = [round(float(spacing_mm[1]), 6), round(float(spacing_mm[0]), 6)]
    dataset.SliceThickness = round(float(spacing_mm[2]), 6)
    dataset.ImageOrientationPatient = [*map(float, (affine[:3, :2] / spacing_mm[:2]).T.ravel())]
    dataset.ImagePositionPatient = [round(float(mm), 6) for mm in (affine @ [0, 0, number, 1])[:3]]
    dataset.SamplesPerPixel, dataset.PhotometricInterpretation = 1, "MONOCHROME2"
    dataset.BitsAllocated, dataset.BitsStored, dataset.HighBit, dataset.PixelRepresentation = 16, 16, 15, 1
    dataset.RescaleSlope, dataset.RescaleIntercept, dataset.RescaleType = 1, 0, "HU"
    dataset.WindowCenter, dataset.WindowWidth = 40, 400
    dataset.PixelData = np.ascontiguousarray(scan.array[..., number].T, dtype="<i2").tobytes()
    return dataset
