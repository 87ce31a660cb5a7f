"""A prediction as DICOM files that refer to the scan's series: what an archive and its viewers take."""

import math
from collections.abc import Mapping
from pathlib import Path

from medssl.core.errors import ConfigError
from medssl.core.files import written_together
from medssl.data.dicom_map import write_parametric_map
from medssl.data.dicom_seg import SegmentStyle, write_segmentation
from medssl.data.voxel_grid import Volume
from medssl.inference.predictor import Prediction
from medssl.uncertainty.ranking import BANDS, uncertainty_bands

DICOM_NAMES = ("seg", "entropy", "bands")
BAND_STYLE = SegmentStyle(
    series_number=1002,
    series_description="Uncertainty bands",
    category=("309825002", "SCT", "Spatial and Relational Concept"),
    kind=("64957009", "SCT", "Uncertain"),
    colours={1: (255, 237, 160), 2: (254, 178, 76), 3: (227, 26, 28)},
)


def write_dicom(
    prediction: Prediction, series_dir: str | Path, folder: str | Path, structures: Mapping[int, str]
) -> list[Path]:
    """Write `<id>_seg.dcm`, `<id>_entropy.dcm` and `<id>_bands.dcm` into the folder; returns their paths in this order.

    The structures as segments, the entropy in bits as a parametric map, and its bands (BANDS) as segments, which
    viewers without parametric maps show too. Raises DataError where series_dir is not the series of the prediction or
    nothing can refer to it, ConfigError where the folder is the series' own or highdicom is missing, MedsslError where
    the disk is full. All three files are written, or none.
    """
    if Path(folder).resolve() == Path(series_dir).resolve():
        raise ConfigError(f"{folder}: the files would become part of the series itself. Choose another folder.")
    classes, affine = len(prediction.probs), prediction.affine
    with written_together(folder, prediction.case_id) as staging:
        segmentation, entropy, bands = dicom_paths(staging, prediction.case_id)
        write_segmentation(Volume(prediction.segmentation, affine), series_dir, segmentation, structures)
        write_parametric_map(Volume(prediction.entropy, affine), series_dir, entropy, highest=math.log2(classes))
        banded = Volume(uncertainty_bands(prediction.entropy, classes), affine)
        write_segmentation(banded, series_dir, bands, BANDS, style=BAND_STYLE)
    return dicom_paths(folder, prediction.case_id)


def dicom_paths(folder: str | Path, case_id: str) -> list[Path]:
    """Where write_dicom puts a case's files."""
    return [Path(folder) / f"{case_id}_{name}.dcm" for name in DICOM_NAMES]
