"""A label map as the file a viewer asks for."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import SimpleITK
from fastapi import BackgroundTasks

from medssl.core.errors import DataError
from medssl.data.dicom_seg import write_segmentation
from medssl.data.volumes import read_volume, write_nifti
from medssl.data.voxel_grid import LPS_TO_RAS, Volume
from medssl.inference.dicom_outputs import BAND_STYLE
from medssl.label_app.submitted import segment_names
from medssl.uncertainty.ranking import BANDS

FORMATS = (".nii.gz", ".nii", ".nrrd")


def label_file(labels: Volume, extension: str, compress: bool = True) -> Path:
    """A new temporary file with the label map, uint8, in one of FORMATS; the caller removes it. DataError otherwise."""
    if extension not in FORMATS:
        raise DataError(f"result_extension '{str(extension)[:16]}': expected one of {', '.join(FORMATS)}.")
    with tempfile.NamedTemporaryFile(suffix=extension, delete=False) as opened:
        file = Path(opened.name)
    if extension == ".nrrd":
        SimpleITK.WriteImage(_image(labels), str(file), compress)
    else:
        write_nifti(file, labels.array, labels.affine, np.uint8)
    return file


def segmentation_file(series_dir: str, label: str, label_info: Sequence[Mapping[str, Any]], **_: Any) -> str:
    """A new temporary DICOM SEG file of the label map in `label`, for the series in series_dir.

    Called as MONAI Label calls its own, which leaves out empty slices and names segments by their order: here all
    slices are referred to, and `label_info` names them as it does in a label that is submitted. Bands of uncertainty
    (BANDS) have their own colours and codes.
    """
    labels, names = read_volume(label), segment_names(label_info)
    unnamed = set(np.unique(labels.array[labels.array > 0]).astype(int).tolist()) - names.keys()
    structures = names | {number: f"label {number}" for number in unnamed}
    style = BAND_STYLE if structures.items() <= BANDS.items() else None
    with tempfile.NamedTemporaryFile(suffix=".dcm", delete=False) as opened:
        file = Path(opened.name)
    try:
        write_segmentation(labels, series_dir, file, structures, style=style)
    except BaseException:
        file.unlink()
        raise
    return str(file)


def removing_segmentations(send_response: Callable) -> Callable:
    """MONAI Label's send_response, which removes the label map it has sent, made to remove the DICOM SEG file, too."""

    def send(datastore: Any, result: dict[str, Any], output: Any, background_tasks: BackgroundTasks) -> Any:
        if file := result.get("dicom_seg"):  # it bears the patient's name
            background_tasks.add_task(Path(file).unlink, missing_ok=True)
        return send_response(datastore, result, output, background_tasks)

    return send


def _image(labels: Volume) -> SimpleITK.Image:
    image = SimpleITK.GetImageFromArray(np.ascontiguousarray(labels.array.T.astype(np.uint8)))
    affine, spacing = LPS_TO_RAS @ labels.affine, labels.spacing_mm
    image.SetSpacing(spacing)
    image.SetOrigin(affine[:3, 3].tolist())
    image.SetDirection((affine[:3, :3] / np.asarray(spacing)).ravel().tolist())
    return image
