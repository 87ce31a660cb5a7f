"""Studies that are DICOM series: each is made a scan when it is first asked for, its files kept at hand to refer to."""

import contextlib
import logging
import secrets
import shutil
import zlib
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from monailabel.datastore.local import ImageLabelModel
from monailabel.datastore.utils.convert import binary_to_image

from medssl.core.errors import DataError
from medssl.data.volumes import read_header, read_volume, write_nifti
from medssl.data.voxel_grid import grid_mismatches
from medssl.label_app.datastore import StudyDatastore, entry_of
from medssl.label_app.names import checked_name
from medssl.label_app.tags import FINAL, OUTGROWN, tag_of_others

logger = logging.getLogger(__name__)


class SeriesDatastore(StudyDatastore):
    """A series with the id `x` is the folder `x` with its files and, converted without loss, the scan `x.nii.gz`.

    Subclasses know which series there are, where their files come from and where a reviewed label goes as DICOM SEG.
    """

    def __init__(self, datastore_path: str | Path, structures: Mapping[int, str], read_only: bool = False) -> None:
        locks = Path(datastore_path) / ".locks"
        locks.mkdir(parents=True, exist_ok=True)
        self._locks, self._of_series = locks, dict[str, FileLock]()
        self._submissions = FileLock(locks / "submissions")  # held while a reviewed label and its DICOM SEG change
        super().__init__(str(datastore_path), structures, read_only)

    def _turn(self, image_id: str) -> FileLock:
        """Held by one thread of one process while the files of a series, or its scan, change; it may take it again."""
        name = f"series-{zlib.crc32(image_id.encode()) % 64}"  # not one for whatever is asked for
        return self._of_series.setdefault(name, FileLock(self._locks / name))

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

    def _facts_of_label(self) -> dict[str, str]:
        """What is noted together with a reviewed label, for `_keep_segmentation` to go by."""
        return {}

    @abstractmethod
    def _keep_segmentation(self, image_id: str) -> None:
        """Store the reviewed label as DICOM SEG."""

    def get_image_uri(self, image_id: str) -> str:
        """The series as .nii.gz, converted if it is not there yet, or has changed since.

        Raises DataError for a series that cannot become a volume, ImageNotFoundException for one there is not.
        """
        scan = self._image_folder / f"{checked_name(image_id, 'study')}.nii.gz"
        with self._turn(image_id):
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
        with self.changing() as entries:
            file.rename(target)
            entries[image_id].labels[OUTGROWN] = entries[image_id].labels.pop(FINAL)
        logger.warning("A series has changed: its label does not fit any more and is kept as '%s'", OUTGROWN)

    def series_folder(self, image_id: str) -> Path:
        """The folder with the files of a series, brought here if they are not yet."""
        target = self._image_folder / checked_name(image_id, "study")
        with self._turn(image_id):
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
        if not label_filename.endswith(".bin"):
            return self._submit(image_id, label_filename, label_tag, label_info)
        converted = binary_to_image(self.get_image_uri(image_id), label_filename)  # OHIF's plain voxels
        try:
            return self._submit(image_id, converted, label_tag, label_info)
        finally:
            Path(converted).unlink(missing_ok=True)

    def _submit(self, image_id: str, file: str, label_tag: str, label_info: dict[str, Any] | None) -> str:
        if tag_of_others(label_tag) != FINAL:
            return super().save_label(image_id, file, label_tag, label_info)
        self.get_image_uri(image_id)  # brought before others have to wait
        with self._submissions:
            super().save_label(image_id, file, label_tag, {**(label_info or {}), **self._facts_of_label()})
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
