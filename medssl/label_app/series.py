"""Studies that are DICOM series: each is made a scan when it is first asked for, its files kept at hand to refer to."""

import contextlib
import logging
import secrets
import shutil
import threading
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from monailabel.datastore.local import ImageLabelModel
from monailabel.datastore.utils.convert import binary_to_image

from medssl.data.geometry import grid_mismatches
from medssl.data.volumes import read_header, read_volume, write_nifti
from medssl.errors import DataError
from medssl.label_app.datastore import StudyDatastore, entry_of
from medssl.label_app.names import checked_name
from medssl.label_app.tags import FINAL, OUTGROWN

logger = logging.getLogger(__name__)


class SeriesDatastore(StudyDatastore):
    """A series with the id `x` is the folder `x` with its files and, converted without loss, the scan `x.nii.gz`.

    Subclasses know which series there are, where their files come from and where a reviewed label goes as DICOM SEG.
    """

    def __init__(self, datastore_path: str | Path, structures: Mapping[int, str], read_only: bool = False) -> None:
        self._conversions = threading.RLock()
        super().__init__(str(datastore_path), structures, read_only)

    @abstractmethod
    def list_images(self) -> list[str]:
        """The ids of the series there are, sorted."""

    @abstractmethod
    def _bring(self, image_id: str, folder: Path) -> None:
        """Put the files of a series into a new folder; ImageNotFoundException for one there is not."""

    @abstractmethod
    def _facts(self, image_id: str) -> dict[str, Any]:
        """What is noted of a series when it becomes a scan; nothing of the patient."""

    def _is_current(self, image_id: str) -> bool:
        """Whether the scan, if it is there, is still that of the series."""
        return True

    def _fits(self, image_id: str, folder: Path) -> bool:
        """Whether a folder still has the files of the series."""
        return True

    @abstractmethod
    def _keep_segmentation(self, image_id: str) -> None:
        """Store the reviewed label as DICOM SEG."""

    def get_image_uri(self, image_id: str) -> str:
        """The series as .nii.gz, converted if it is not there yet, or has changed since.

        Raises DataError for a series that cannot become a volume, ImageNotFoundException for one there is not.
        """
        scan = self._image_folder / f"{checked_name(image_id, 'study')}.nii.gz"
        with self._conversions:
            series, is_current = self.series_folder(image_id), self._is_current(image_id)
            if not is_current or not scan.is_file():
                volume = read_volume(series)
                array = _compact(volume.array)
                write_nifti(scan, array, volume.affine, array.dtype)
            if not is_current:
                self._set_aside_outgrown_label(image_id)
            if not is_current or image_id not in self._datastore.objects:
                facts = self._facts(image_id)
                with self.changing() as entries:
                    new = ImageLabelModel(image=entry_of(facts, scan.name, ".nii.gz"))
                    entries.setdefault(image_id, new).image.info.update(facts)
        return str(scan)

    def _set_aside_outgrown_label(self, image_id: str) -> None:
        """Give a reviewed label that lies on another grid than the scan the tag `outgrown`: it needs a new review."""
        if not self._has_label(image_id):
            return
        scan, file = read_header(self._image_folder / f"{image_id}.nii.gz"), self._file_of_label(image_id)
        if not list(grid_mismatches(scan, read_header(file))):
            return
        target = Path(self._datastore.label_path(OUTGROWN)) / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        file.rename(target)
        with self.changing() as entries:
            entries[image_id].labels[OUTGROWN] = entries[image_id].labels.pop(FINAL)
        logger.warning("A series has changed: its label does not fit any more and is kept as '%s'", OUTGROWN)

    def series_folder(self, image_id: str) -> Path:
        """The folder with the files of a series, brought here if they are not yet."""
        target = self._image_folder / checked_name(image_id, "study")
        with self._conversions:
            if not target.is_dir() or not self._fits(image_id, target):
                partial = target.with_name(f".{secrets.token_hex(8)}.part")
                try:
                    self._bring(image_id, partial)
                    shutil.rmtree(target, ignore_errors=True)
                    partial.rename(target)
                finally:
                    shutil.rmtree(partial, ignore_errors=True)
        return target

    def add_image(self, image_id: str, image_filename: str, image_info: Mapping[str, Any] | None) -> str:
        """DataError: a scan that is no DICOM series has no place among these."""
        raise DataError("scan that was sent: the studies here are DICOM series. Put its series where they lie.")

    def save_label(self, image_id: str, label_filename: str, label_tag: str, label_info: dict[str, Any] | None) -> str:
        """Store a label here and, of the tag final, as DICOM SEG, too."""
        if label_filename.endswith(".bin"):  # OHIF's plain voxels
            label_filename = binary_to_image(self.get_image_uri(image_id), label_filename)
        super().save_label(image_id, label_filename, label_tag, label_info)
        if str(getattr(label_tag, "value", label_tag)) == FINAL:
            self._keep_segmentation(image_id)
        return image_id

    def reviewed(self) -> dict[str, Path]:
        """Study -> file of its reviewed label, without those that a series that has changed since has outgrown."""
        for name in super().reviewed():
            with contextlib.suppress(DataError):
                self.get_image_uri(name)
        return super().reviewed()

    def datalist(self, full_path: bool = True) -> list[dict[str, Any]]:
        return [{"image": self.get_image_uri(name), "label": str(file)} for name, file in self.reviewed().items()]


def _compact(array: np.ndarray) -> np.ndarray:
    """The same numbers as int16 where that holds them all."""
    with np.errstate(invalid="ignore"):
        integers = array.astype(np.int16)
    return integers if np.array_equal(integers, array) else array
