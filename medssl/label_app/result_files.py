"""A label map as the file a viewer asks for."""

import tempfile
from pathlib import Path

import numpy as np
import SimpleITK

from medssl.data.geometry import LPS_TO_RAS, Volume
from medssl.data.volumes import write_nifti
from medssl.errors import DataError

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


def _image(labels: Volume) -> SimpleITK.Image:
    image = SimpleITK.GetImageFromArray(np.ascontiguousarray(labels.array.T.astype(np.uint8)))
    affine, spacing = LPS_TO_RAS @ labels.affine, labels.spacing_mm
    image.SetSpacing(spacing)
    image.SetOrigin(affine[:3, 3].tolist())
    image.SetDirection((affine[:3, :3] / np.asarray(spacing)).ravel().tolist())
    return image
