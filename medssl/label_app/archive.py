"""The studies of a DICOMweb archive such as Orthanc: series in, reviewed labels out as DICOM SEG.

No name, id or birth date of a patient is asked for or kept beside the series themselves.
"""

import logging
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dicomweb_client import DICOMwebClient
from monailabel.datastore.utils.dicom import dicom_web_download_series, dicom_web_upload_dcm
from monailabel.interfaces.exception import ImageNotFoundException
from pydicom import dcmread
from pydicom.dataset import Dataset

from medssl.data.dicom_seg import open_segmentation, segmentation_in, write_segmentation
from medssl.data.geometry import Volume, reordered
from medssl.data.volumes import read_header, read_volume, write_nifti
from medssl.errors import DataError
from medssl.label_app.datastore import FINAL, entry_of
from medssl.label_app.names import is_name
from medssl.label_app.series import SeriesDatastore
from medssl.label_app.submitted import submitted_label

_KEPT = ("Modality", "StudyInstanceUID")
logger = logging.getLogger(__name__)


class ArchiveDatastore(SeriesDatastore):
    """Series that fit `search_filter`, each downloaded once into `cache_path` and checked as it becomes a volume.

    A series counts as reviewed when the archive holds a segmentation of it that a person made or corrected: one whose
    segments are all marked as automatic is a proposal.
    """

    def __init__(
        self,
        client: DICOMwebClient,
        search_filter: Mapping[str, Any],
        cache_path: str | Path,
        structures: Mapping[int, str],
        read_only: bool = False,
    ) -> None:
        self._client, self._search_filter = client, dict(search_filter)
        self._seen: dict[str, _Segmentation | None] = {}
        super().__init__(cache_path, structures, read_only)

    def list_images(self) -> list[str]:
        """The ids (series UIDs) in the archive, sorted."""
        found = self._client.search_for_series(search_filters=self._search_filter)
        return sorted(uid for entry in found if is_name(uid := str(Dataset.from_json(entry).SeriesInstanceUID)))

    def get_labeled_images(self, label_tag: str | None = None, labels: list[str] | None = None) -> list[str]:
        return sorted(set(self._segmentations()) & set(self.list_images()))

    def get_unlabeled_images(self, label_tag: str | None = None, labels: list[str] | None = None) -> list[str]:
        return sorted(set(self.list_images()) - set(self._segmentations()))

    def reviewed(self) -> dict[str, Path]:
        """Study -> file of its reviewed label; those that only the archive has are fetched.

        One that cannot be used is left out, with a warning that says why.
        """
        for image_id, newest in self._segmentations().items():
            known = self._datastore.objects.get(image_id)
            if known and FINAL in known.labels and known.labels[FINAL].info.get("SeriesInstanceUID") == newest.series:
                continue
            try:
                self._fetch_label(image_id, newest)
            except DataError as error:
                logger.warning("A segmentation in the archive is left out. %s", error)
        return super().reviewed()

    def _bring(self, image_id: str, folder: Path) -> None:
        try:
            dicom_web_download_series(None, image_id, str(folder), self._client)
        except IndexError:
            raise ImageNotFoundException(f"{image_id}: no such series in the archive") from None

    def _facts(self, image_id: str) -> dict[str, str]:
        found = self._client.search_for_series(search_filters={"SeriesInstanceUID": image_id})
        dataset = Dataset.from_json(found[0]) if found else Dataset()
        kept = {name: str(dataset[name].value) for name in _KEPT if name in dataset}
        return {"SeriesInstanceUID": image_id, **kept}

    def _segmentations(self) -> dict[str, "_Segmentation"]:
        """Series -> the newest segmentation of it that a person has seen."""
        newest: dict[str, _Segmentation] = {}
        for entry in self._client.search_for_series(search_filters={"Modality": "SEG"}):
            found = Dataset.from_json(entry)
            study, series = str(found.StudyInstanceUID), str(found.SeriesInstanceUID)
            if series not in self._seen:
                metadata = Dataset.from_json(self._client.retrieve_series_metadata(study, series)[0])
                self._seen[series] = _reviewed_segmentation(metadata, study, series)
            seen = self._seen[series]
            if seen is not None and (seen.of not in newest or newest[seen.of].made < seen.made):
                newest[seen.of] = seen
        return newest

    def _fetch_label(self, image_id: str, newest: "_Segmentation") -> None:
        scan = read_header(self.get_image_uri(image_id))
        folder = self._image_folder / f".{secrets.token_hex(8)}.part"
        try:
            dicom_web_download_series(newest.study, newest.series, str(folder), self._client)
            file = segmentation_in(folder)
            if file is None:
                raise DataError(f"{image_id}: its segmentation series holds no single DICOM SEG file.")
            found = open_segmentation(file)
            label = reordered(Volume(found.voxels(), found.header.affine), scan)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        classes = submitted_label(label, scan, self.structures, dict(found.structures), image_id)
        target = Path(self._datastore.label_path(FINAL)) / f"{image_id}.nii.gz"
        write_nifti(target, classes.array, classes.affine, classes.array.dtype)
        with self.changing() as entries:
            entries[image_id].labels[FINAL] = entry_of({"SeriesInstanceUID": newest.series}, target.name, ".nii.gz")

    def _keep_segmentation(self, image_id: str) -> None:
        """Upload the label."""
        label, file = read_volume(self._file_of_label(image_id)), self._image_folder / f".{image_id}.seg.part"
        try:
            write_segmentation(label, self._image_folder / image_id, file, self.structures, algorithm=None)
            dicom_web_upload_dcm(str(file), self._client)
            series = str(dcmread(file, specific_tags=["SeriesInstanceUID"]).SeriesInstanceUID)
        finally:
            file.unlink(missing_ok=True)
        self.update_label_info(image_id, FINAL, {"SeriesInstanceUID": series})


@dataclass(frozen=True)
class _Segmentation:
    of: str
    made: str
    study: str
    series: str


def _reviewed_segmentation(metadata: Dataset, study: str, series: str) -> _Segmentation | None:
    """What the segmentation is of, None if it refers to nothing or no person has touched it."""
    referenced = metadata.get("ReferencedSeriesSequence")
    kinds = {str(segment.get("SegmentAlgorithmType", "")) for segment in metadata.get("SegmentSequence", [])}
    if not referenced or kinds == {"AUTOMATIC"}:
        return None
    made = f"{metadata.get('ContentDate', '')}{metadata.get('ContentTime', '')}"
    return _Segmentation(str(referenced[0].SeriesInstanceUID), made, study, series)
