"""Small volumes that tests of commands write."""

from pathlib import Path

import nibabel
import numpy as np


def write_volume(path: Path, values, spacing=(1.0, 1.0, 2.0), offset=0.0) -> None:
    """Write voxels as NIfTI, with a spacing and an offset in mm."""
    affine = np.diag([*spacing, 1.0])
    affine[:3, 3] = offset
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(nibabel.Nifti1Image(values, affine), path)
