"""The studies of a folder of DICOM series: the files stay as they are, scans and labels are kept in the workspace."""

import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from monailabel.interfaces.exception import ImageNotFoundException

from medssl.core.errors import DataError
from medssl.core.files import write_text_atomically
from medssl.data.dicom_seg import write_segmentation
from medssl.data.volumes import read_volume
from medssl.label_app.datastore import FACTS
from medssl.label_app.series import SeriesDatastore
from medssl.label_app.series_map import read_map
from medssl.label_app.tags import FINAL

STAMP, SEGMENTATION = f"{FACTS}:series_stamp", "dicom_seg"
logger = logging.getLogger(__name__)


class FolderOfSeries(SeriesDatastore):
    """The series of a map (`medssl.label_app.series_map`), with links to their files.

    A series that cannot become a scan is named in the log by its id, with the reason in problems.json. A reviewed label
    is kept as labels/final/<id>.nii.gz and as dicom_seg/<id>.dcm. What was stored of a series that is no longer in the
    folder is left as it is, and counts again when the series is back.
    """

    def __init__(
        self, series_map: Path, datastore_path: str | Path, structures: Mapping[int, str], read_only: bool = False
    ) -> None:
        self._series = read_map(series_map)
        self._problems: dict[str, str] = {}
        super().__init__(datastore_path, structures, read_only)
        if not read_only:
            self._note_problems()

    def list_images(self) -> list[str]:
        return sorted(self._series)

    def get_labeled_images(self, label_tag: str | None = None, labels: list[str] | None = None) -> list[str]:
        return [name for name in self.list_images() if self._has_label(name)]

    def get_unlabeled_images(self, label_tag: str | None = None, labels: list[str] | None = None) -> list[str]:
        return [name for name in self.list_images() if not self._has_label(name)]

    def get_image_uri(self, image_id: str) -> str:
        """As of SeriesDatastore; a series that cannot become a volume is not tried again."""
        if image_id not in self._series:
            raise ImageNotFoundException(f"{image_id}: no such series")
        if image_id in self._problems:
            raise DataError(self._problems[image_id])
        with self._turn(image_id):
            try:
                return super().get_image_uri(image_id)
            except DataError as error:
                self._problems[image_id] = self._without_folder(image_id, error)
                self._note_problems()
                logger.warning("%s cannot be served; problems.json in the workspace has the reason", image_id)
                raise DataError(self._problems[image_id]) from error

    def _bring(self, image_id: str, folder: Path) -> None:
        folder.mkdir()
        for place, file in enumerate(self._series[image_id].files):
            os.symlink(file, folder / f"{place:05d}.dcm")  # noqa: PTH211

    def _facts(self, image_id: str) -> dict[str, Any]:
        return {STAMP: self._stamp(image_id)}

    def _is_current(self, image_id: str) -> bool:
        known = self._datastore.objects.get(image_id)
        return known is None or known.image.info.get(STAMP) == self._stamp(image_id)

    def _fits(self, image_id: str, folder: Path) -> bool:
        return [link.readlink() for link in sorted(folder.iterdir())] == list(self._series[image_id].files)

    def _stamp(self, image_id: str) -> str:
        return self._series[image_id].stamp

    def _keep_segmentation(self, image_id: str) -> None:
        """Write dicom_seg/<id>.dcm; of a series that no file can refer to the label's facts say why there is none."""
        label, file = read_volume(self._file_of_label(image_id)), self.root / SEGMENTATION / f"{image_id}.dcm"
        try:
            write_segmentation(label, self.series_folder(image_id), file, self.structures, algorithm=None)
            noted = {SEGMENTATION: str(file.relative_to(self.root))}
        except DataError as error:
            file.unlink(missing_ok=True)  # of an earlier label
            noted = {f"no_{SEGMENTATION}": self._without_folder(image_id, error)}
            logger.warning("%s: its label is kept, but cannot be written as DICOM SEG", image_id)
        self.update_label_info(image_id, FINAL, noted)

    def _without_folder(self, image_id: str, error: DataError) -> str:
        return str(error).replace(str(self._image_folder / image_id), image_id)

    def _note_problems(self) -> None:
        with self._threads:
            told = json.dumps(dict(self._problems), indent=1, sort_keys=True)
            write_text_atomically(self.root / "problems.json", told)
