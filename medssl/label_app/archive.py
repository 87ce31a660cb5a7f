"""The studies of a DICOMweb archive such as Orthanc: series in, reviewed labels out as DICOM SEG.

No name, id or birth date of a patient is asked for or kept beside the series themselves.
"""

import logging
import re
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dicomweb_client import DICOMwebClient
from monailabel.datastore.utils.dicom import dicom_web_upload_dcm
from monailabel.interfaces.exception import ImageNotFoundException
from pydicom import dcmread
from pydicom.dataset import Dataset
from pydicom.uid import generate_uid

from medssl import __version__
from medssl.data.dicom_seg import SegmentStyle, open_segmentation, segmentation_in, write_segmentation
from medssl.data.geometry import Header, Volume, reordered
from medssl.data.volumes import read_header, read_volume, write_nifti
from medssl.errors import DataError
from medssl.label_app.datastore import FACTS, entry_of
from medssl.label_app.download import ARCHIVE_AWAY, download_series, faults_of_series, find_series, instances_of
from medssl.label_app.names import is_name
from medssl.label_app.series import SeriesDatastore
from medssl.label_app.submitted import placed, submitted_label
from medssl.label_app.tags import FINAL, OUTGROWN

_UID = re.compile(r"\d+(\.\d+){4,}")
_KEPT = ("Modality", "StudyInstanceUID")
FILES, UNUSABLE = f"{FACTS}:files", f"{FACTS}:unusable_segmentations"
logger = logging.getLogger(__name__)


class ArchiveDatastore(SeriesDatastore):
    """Series that fit `search_filter`, downloaded into `cache_path` and checked as they become volumes.

    A series that has grown in the archive since is downloaded again. It counts as reviewed when the archive holds a
    segmentation of it that a person made or corrected (one whose segments are all marked as automatic is a proposal),
    with a structure of the model in it, and as long as that has not turned out to be unusable.
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
        self._sizes: dict[str, int] = {}  # of the series in the archive, in files, when they were listed
        self._fetched_at: dict[str, int] = {}  # the same, when they were downloaded
        self._complained_of: set[str] = set()
        super().__init__(cache_path, structures, read_only)

    def list_images(self) -> list[str]:
        """The ids (series UIDs) in the archive, sorted."""
        found = map(Dataset.from_json, self._client.search_for_series(search_filters=self._search_filter))
        self._sizes = {uid: instances_of(one) for one in found if is_name(uid := str(one.SeriesInstanceUID))}
        return sorted(self._sizes)

    def version(self, image_id: str) -> str:
        """How many files the archive had of a series when its series were last listed."""
        if not self._sizes:
            self.list_images()
        return str(self._sizes.get(image_id) or "")

    def refresh(self) -> None:
        """As of StudyDatastore; of reviewed series that have grown, only labels that still fit are kept."""
        super().refresh()
        grown = {name for name in self.list_images() if self._has_label(name) and self._has_grown(name)}
        if grown:
            self._take_labels({name: one for name, one in self._segmentations().items() if name in grown})

    def get_labeled_images(self, label_tag: str | None = None, labels: list[str] | None = None) -> list[str]:
        return sorted(set(self._segmentations()) & set(self.list_images()))

    def get_unlabeled_images(self, label_tag: str | None = None, labels: list[str] | None = None) -> list[str]:
        return sorted(set(self.list_images()) - set(self._segmentations()))

    def reviewed(self) -> dict[str, Path]:
        """Study -> file of its reviewed label; those that only the archive has are fetched.

        One that cannot be used is left out, with a warning that says why.
        """
        served = set(self.list_images())
        self._take_labels({name: one for name, one in self._segmentations().items() if name in served})
        return super().reviewed()

    def _bring(self, image_id: str, folder: Path) -> None:
        found = find_series(self._client, image_id)
        if found is None:
            raise ImageNotFoundException(f"{image_id}: no such series in the archive")
        download_series(self._client, str(found.StudyInstanceUID), image_id, folder)
        self._fetched_at[image_id] = instances_of(found)

    def _fits(self, image_id: str, folder: Path) -> bool:
        """Whether the archive has no more of the series than when it was downloaded; true while it is away."""
        try:
            found = find_series(self._client, image_id)
        except ARCHIVE_AWAY:
            return True
        return found is None or instances_of(found) <= max(_files_in(folder), self._fetched_at.get(image_id, 0))

    def _is_current(self, image_id: str) -> bool:
        known = self._datastore.objects.get(image_id)
        return known is not None and known.image.info.get(FILES) == _files_in(self._image_folder / image_id)

    def _has_grown(self, image_id: str) -> bool:
        known = self._datastore.objects[image_id].image.info.get(FILES, 0)
        return self._sizes.get(image_id, 0) > max(known, self._fetched_at.get(image_id, 0))

    def _facts(self, image_id: str) -> dict[str, Any]:
        found = find_series(self._client, image_id) or Dataset()
        kept = {name: str(found[name].value) for name in _KEPT if name in found}
        return {"SeriesInstanceUID": image_id, **kept, FILES: _files_in(self._image_folder / image_id)}

    def _segmentations(self) -> dict[str, "_Segmentation"]:
        """Series -> the newest segmentation of it that a person has seen, and that is not known to be unusable."""
        newest: dict[str, _Segmentation] = {}
        for entry in self._client.search_for_series(search_filters={"Modality": "SEG"}):
            found = Dataset.from_json(entry)
            seen = self._segmentation(str(found.StudyInstanceUID), str(found.SeriesInstanceUID))
            if seen is None or seen.series in self._unusable(seen.of):
                continue
            if seen.of not in newest or newest[seen.of].made < seen.made:
                newest[seen.of] = seen
        return newest

    def _segmentation(self, study: str, series: str) -> "_Segmentation | None":
        """What a series of modality SEG is, asked for once; None if it is no review."""
        if series not in self._seen:
            try:
                with faults_of_series(series):
                    metadata = Dataset.from_json(self._client.retrieve_series_metadata(study, series)[0])
                    self._seen[series] = _reviewed_segmentation(metadata, study, series, self.structures)
            except DataError as error:
                self._complain(series, error)
                return None
        return self._seen[series]

    def _take_labels(self, newest: Mapping[str, "_Segmentation"]) -> None:
        """Fetch the labels that are not here yet; where one is unusable, the one before it."""
        for image_id, first in newest.items():
            candidate: _Segmentation | None = first
            while candidate is not None and not self._takes(image_id, candidate):
                candidate = self._segmentations().get(image_id)

    def _takes(self, image_id: str, candidate: "_Segmentation") -> bool:
        """Fetch a label; False if it is unusable, which is noted. What may be had later leaves a warning alone."""
        try:
            scan = read_header(self.get_image_uri(image_id))  # which sets aside a label that the series has outgrown
            if candidate.series not in self._unusable(image_id) and not self._has(image_id, candidate):
                self._fetch_label(image_id, candidate, scan)
        except DataError as error:
            self._complain(candidate.series, error)
        return candidate.series not in self._unusable(image_id)

    def _has(self, image_id: str, candidate: "_Segmentation") -> bool:
        label = self._datastore.objects[image_id].labels.get(FINAL)
        return label is not None and label.info.get("SeriesInstanceUID") == candidate.series

    def _unusable(self, image_id: str) -> set[str]:
        """Segmentations of the series that it has outgrown, or that were found to be of something else."""
        known = self._datastore.objects.get(image_id)
        if known is None:
            return set()
        outgrown = known.labels.get(OUTGROWN)
        own = {str(outgrown.info["SeriesInstanceUID"])} if outgrown and "SeriesInstanceUID" in outgrown.info else set()
        return own | set(known.image.info.get(UNUSABLE, []))

    def _complain(self, series: str, error: DataError) -> None:
        """Warn of a segmentation, once; UIDs, which lead to the patient, are left out."""
        if series not in self._complained_of:
            self._complained_of.add(series)
            logger.warning("A segmentation in the archive is left out. %s", _UID.sub("<uid>", str(error)))

    def _fetch_label(self, image_id: str, newest: "_Segmentation", scan: Header) -> None:
        folder = self._image_folder / f".{secrets.token_hex(8)}.part"
        try:
            download_series(self._client, newest.study, newest.series, folder)
            classes = self._classes_in(folder, scan, image_id)
        except UnusableSegmentation:
            known = self._datastore.objects[image_id].image.info.get(UNUSABLE, [])
            self.update_image_info(image_id, {UNUSABLE: [*known, newest.series]})
            raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        target = Path(self._datastore.label_path(FINAL)) / f"{image_id}.nii.gz"
        write_nifti(target, classes.array, classes.affine, classes.array.dtype)
        with self.changing() as entries:
            entries[image_id].labels[FINAL] = entry_of({"SeriesInstanceUID": newest.series}, target.name, ".nii.gz")

    def _classes_in(self, folder: Path, scan: Header, image_id: str) -> Volume:
        """The label in a downloaded segmentation; UnusableSegmentation if that is none of the scan."""
        try:
            file = segmentation_in(folder)
            if file is None:
                raise DataError(f"{image_id}: its segmentation series holds no single DICOM SEG file.")
            found = open_segmentation(file)
            label = reordered(Volume(found.voxels(), found.header.affine), scan)
            if _referenced(file) >= len(list(self.series_folder(image_id).iterdir())):
                label = placed(label, scan)  # it knew the whole series: slices without a frame are empty ones
            return submitted_label(label, scan, self.structures, dict(found.structures), image_id)
        except DataError as error:
            raise UnusableSegmentation(str(error)) from error

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

    def propose(self, image_id: str, segmentation: Volume, weights: str) -> None:
        """Upload what a model with these weights has found, as an automatic segmentation, if the archive has it not.

        Its UIDs follow from study and weights. Structures that were not found are left out, and with them a
        segmentation without any: OHIF cannot open an empty segment.
        """
        series, instance = (generate_uid(entropy_srcs=[part, image_id, weights]) for part in ("series", "instance"))
        found = {number: name for number, name in self.structures.items() if (segmentation.array == number).any()}
        if not found or self._client.search_for_series(search_filters={"SeriesInstanceUID": series}):
            return
        file = self._image_folder / f".{image_id}.proposal.part"
        maker, style = f"medssl {__version__}, weights {weights}", SegmentStyle(series_description="Proposal of medssl")
        try:
            write_segmentation(segmentation, self.series_folder(image_id), file, found, algorithm=maker, style=style)
            proposal = dcmread(file)
        finally:
            file.unlink(missing_ok=True)
        proposal.SeriesInstanceUID = series
        proposal.SOPInstanceUID = proposal.file_meta.MediaStorageSOPInstanceUID = instance
        self._client.store_instances([proposal])


def _referenced(file: Path) -> int:
    """How many instances of its series a DICOM SEG names; fewer than there are if it was drawn before they came."""
    listed = dcmread(file, specific_tags=["ReferencedSeriesSequence"]).get("ReferencedSeriesSequence", [])
    return sum(len(series.get("ReferencedInstanceSequence", [])) for series in listed)


class UnusableSegmentation(DataError):
    """A segmentation that never will be a label of its series, however often it is fetched."""


@dataclass(frozen=True)
class _Segmentation:
    of: str
    made: str
    study: str
    series: str


def _reviewed_segmentation(
    metadata: Dataset, study: str, series: str, structures: Mapping[int, str]
) -> _Segmentation | None:
    """What the segmentation is of; None if it refers to nothing, no person has touched it, or no structure is known."""
    referenced, segments = metadata.get("ReferencedSeriesSequence"), metadata.get("SegmentSequence", [])
    kinds = {str(segment.get("SegmentAlgorithmType", "")) for segment in segments}
    names = {str(segment.get("SegmentLabel", "")).strip().casefold() for segment in segments}
    if not referenced or kinds == {"AUTOMATIC"} or not names & {name.casefold() for name in structures.values()}:
        return None
    made = f"{metadata.get('ContentDate', '')}{metadata.get('ContentTime', '')}"
    return _Segmentation(str(referenced[0].SeriesInstanceUID), made, study, series)


def _files_in(folder: Path) -> int:
    return sum(1 for _ in folder.iterdir()) if folder.is_dir() else 0
