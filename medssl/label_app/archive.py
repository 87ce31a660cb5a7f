"""The studies of a DICOMweb archive such as Orthanc: series in, reviewed labels out as DICOM SEG.

No name, id or birth date of a patient is asked for or kept beside the series themselves.
"""

import logging
import math
import re
import secrets
import shutil
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from dicomweb_client import DICOMwebClient
from monailabel.interfaces.exception import ImageNotFoundException
from pydicom import dcmread
from pydicom.dataset import Dataset
from pydicom.uid import generate_uid

from medssl import __version__
from medssl.core.errors import DataError
from medssl.data.dicom_seg import SegmentStyle, open_segmentation, segmentation_in, write_segmentation
from medssl.data.volumes import read_header, read_volume, write_nifti
from medssl.data.voxel_grid import Header, Volume, reordered
from medssl.label_app.archive_segmentations import Segmentation, reviewed_segmentation, store_in_archive
from medssl.label_app.datastore import FACTS, entry_of
from medssl.label_app.download import ARCHIVE_AWAY, download_series, faults_of_series, find_series, instances_of
from medssl.label_app.names import is_name
from medssl.label_app.series import SeriesDatastore
from medssl.label_app.submitted import placed, submitted_label
from medssl.label_app.tags import FINAL, OUTGROWN

_UID = re.compile(r"\d+(\.\d+){4,}")
_KEPT = ("Modality", "StudyInstanceUID")
FILES, UNUSABLE = f"{FACTS}:files", f"{FACTS}:unusable_segmentations"
SERIES = "SeriesInstanceUID"  # of a reviewed label: the series of the archive that it is the content of
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
        self._seen: dict[str, Segmentation | None] = {}
        self._sizes: dict[str, int] = {}  # of the series in the archive, in files, when they were listed
        self._fetched_at: dict[str, int] = {}  # the same, when they were downloaded
        self._complained_of: dict[str, str] = {}  # segmentation -> why it was left out
        super().__init__(cache_path, structures, read_only)

    def list_images(self) -> list[str]:
        """The ids (series UIDs) in the archive, sorted."""
        sizes = {}
        for entry in self._client.search_for_series(search_filters=self._search_filter):
            series = Dataset.from_json(entry)
            uid = str(series.SeriesInstanceUID)
            if is_name(uid):
                sizes[uid] = instances_of(series)
        self._sizes = sizes
        return sorted(sizes)

    def version(self, image_id: str) -> str:
        """How many files the archive had of a series when its series were last listed."""
        if not self._sizes:
            self.list_images()
        return str(self._sizes.get(image_id) or "")

    def refresh(self) -> None:
        """As of StudyDatastore; new labels of series that are here are fetched: the log says which cannot be used.

        Of reviewed series that have grown, only labels that still fit are kept.
        """
        super().refresh()
        self.list_images()
        newest = self._segmentations()
        self._take_labels({name: label for name, label in newest.items() if self._is_due(name, label)})

    def _is_due(self, image_id: str, newest: Segmentation) -> bool:
        if image_id not in self._sizes or image_id not in self._datastore.objects:
            return False
        is_new = newest.series not in self._complained_of and not self._has(image_id, newest)
        return is_new or (self._has_label(image_id) and self._has_grown(image_id))

    def get_labeled_images(self, label_tag: str | None = None, labels: list[str] | None = None) -> list[str]:
        return sorted(set(self._segmentations()) & set(self.list_images()))

    def get_unlabeled_images(self, label_tag: str | None = None, labels: list[str] | None = None) -> list[str]:
        return sorted(set(self.list_images()) - set(self._segmentations()))

    def reviewed(self) -> dict[str, Path]:
        """Study -> file of its reviewed label; those that only the archive has are fetched.

        One that cannot be used is left out, with a warning that says why.
        """
        served = set(self.list_images())
        self._take_labels({name: label for name, label in self._segmentations().items() if name in served})
        return super().reviewed()

    def _bring(self, image_id: str, folder: Path) -> None:
        series = find_series(self._client, image_id)
        if series is None:
            raise ImageNotFoundException(f"{image_id}: no such series in the archive")
        download_series(self._client, str(series.StudyInstanceUID), image_id, folder)
        self._fetched_at[image_id] = instances_of(series)

    def _fits(self, image_id: str, folder: Path) -> bool:
        """Whether the archive has no more of the series than when it was downloaded; true while it is away."""
        try:
            series = find_series(self._client, image_id)
        except ARCHIVE_AWAY:
            return True
        return series is None or instances_of(series) <= max(_files_in(folder), self._fetched_at.get(image_id, 0))

    def _is_current(self, image_id: str) -> bool:
        known = self._datastore.objects.get(image_id)
        return known is not None and known.image.info.get(FILES) == _files_in(self._image_folder / image_id)

    def _has_grown(self, image_id: str) -> bool:
        known = self._datastore.objects[image_id].image.info.get(FILES, 0)
        return self._sizes.get(image_id, 0) > max(known, self._fetched_at.get(image_id, 0))

    def _facts(self, image_id: str) -> dict[str, Any]:
        series = find_series(self._client, image_id) or Dataset()
        kept = {name: str(series[name].value) for name in _KEPT if name in series}
        return {"SeriesInstanceUID": image_id, **kept, FILES: _files_in(self._image_folder / image_id)}

    def _segmentations(self) -> dict[str, Segmentation]:
        """Series -> the newest segmentation of it that a person has seen, and that is not known to be unusable."""
        newest: dict[str, Segmentation] = {}
        for entry in self._client.search_for_series(search_filters={"Modality": "SEG"}):
            series = Dataset.from_json(entry)
            seen = self._segmentation(str(series.StudyInstanceUID), str(series.SeriesInstanceUID))
            if seen is None or seen.series in self._unusable(seen.of):
                continue
            if seen.of not in newest or self._rank(newest[seen.of]) < self._rank(seen):
                newest[seen.of] = seen
        return newest

    def _rank(self, candidate: Segmentation) -> tuple[datetime, bool]:
        """By what the newest is found; of two that were made at the same time it is the one that is here."""
        is_here = candidate.of in self._datastore.objects and self._has(candidate.of, candidate)
        return candidate.made, is_here

    def _segmentation(self, study: str, series: str) -> Segmentation | None:
        """What a series of modality SEG is, asked for once; None if it is no review."""
        if series not in self._seen:
            try:
                with faults_of_series(series):
                    metadata = Dataset.from_json(self._client.retrieve_series_metadata(study, series)[0])
                    self._seen[series] = reviewed_segmentation(metadata, study, series, self.structures)
            except DataError as error:
                self._complain(series, error)
                return None
        return self._seen[series]

    def left_out(self) -> list[dict[str, str]]:
        """`study` and `reason` of every segmentation that is newer than the label in use, and could not be used."""
        used, served = self._segmentations(), set(self.list_images())
        left_out = []
        for seen in self._seen.values():
            if seen is None or seen.of not in served:
                continue
            is_outdated = seen.of in used and seen.made < used[seen.of].made
            reason = {**self._complained_of, **self._reasons(seen.of)}.get(seen.series)
            if reason is not None and not is_outdated:
                left_out.append({"study": seen.of, "reason": reason})
        unread = [reason for series, reason in self._complained_of.items() if series not in self._seen]
        return left_out + [{"study": "unknown", "reason": reason} for reason in unread]

    def _take_labels(self, newest: Mapping[str, Segmentation]) -> None:
        """Fetch the labels that are not here yet; where one is unusable, the one before it."""
        for image_id, first in newest.items():
            try:
                scan = read_header(self.get_image_uri(image_id))  # sets aside a label that the series has outgrown
                if first.series in self._unusable(image_id) or not self._has(image_id, first):
                    self._take_label(image_id, scan)
            except DataError as error:
                self._complain(first.series, error)

    def _take_label(self, image_id: str, scan: Header) -> None:
        """Fetch the newest label that can be used, unless it is here; what may be had later leaves a warning alone."""
        self._init_from_datastore_file()
        while (newest := self._segmentations().get(image_id)) and not self._has(image_id, newest):
            try:
                classes = self._fetched(image_id, newest, scan)  # before others have to wait
            except DataError as error:
                self._complain(newest.series, error)
                if not isinstance(error, UnusableSegmentation):
                    break
                reasons = {**self._reasons(image_id), newest.series: _without_uids(error)}
                self.update_image_info(image_id, {UNUSABLE: reasons})
            else:
                self._keep_fetched(image_id, newest, classes)

    def _keep_fetched(self, image_id: str, fetched: Segmentation, classes: Volume) -> None:
        """Make it the reviewed label, unless a newer one has been submitted meanwhile."""
        with self._submissions:
            self._init_from_datastore_file()
            if self._segmentations().get(image_id) != fetched or self._has(image_id, fetched):
                return
            target = Path(self._datastore.label_path(FINAL)) / f"{image_id}.nii.gz"
            with self.changing() as entries:
                write_nifti(target, classes.array, classes.affine, classes.array.dtype)
                entries[image_id].labels[FINAL] = entry_of({SERIES: fetched.series}, target.name, ".nii.gz")

    def _has(self, image_id: str, candidate: Segmentation) -> bool:
        label = self._datastore.objects[image_id].labels.get(FINAL)
        return label is not None and label.info.get(SERIES) == candidate.series

    def _unusable(self, image_id: str) -> set[str]:
        """Segmentations of the series that it has outgrown, or that were found to be of something else."""
        known = self._datastore.objects.get(image_id)
        if known is None:
            return set()
        outgrown = known.labels.get(OUTGROWN)
        own = {str(outgrown.info[SERIES])} if outgrown and SERIES in outgrown.info else set()
        return own | self._reasons(image_id).keys()

    def _reasons(self, image_id: str) -> dict[str, str]:
        """Segmentation of a series -> why it cannot be used."""
        known = self._datastore.objects.get(image_id)
        return dict(known.image.info.get(UNUSABLE, {})) if known is not None else {}

    def _complain(self, series: str, error: DataError) -> None:
        """Warn of a segmentation, once; UIDs, which lead to the patient, are left out."""
        if series not in self._complained_of:
            self._complained_of[series] = _without_uids(error)
            logger.warning("A segmentation in the archive is left out. %s", self._complained_of[series])

    def _fetched(self, image_id: str, segmentation: Segmentation, scan: Header) -> Volume:
        """The label in a segmentation of the archive; DataError, UnusableSegmentation if it never will be one."""
        folder = self._image_folder / f".{secrets.token_hex(8)}.part"
        try:
            download_series(self._client, segmentation.study, segmentation.series, folder)
            return self._classes_in(folder, scan, image_id)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _classes_in(self, folder: Path, scan: Header, image_id: str) -> Volume:
        """The label in a downloaded segmentation; UnusableSegmentation if that is none of the scan, or damaged."""
        try:
            file = segmentation_in(folder)
            if file is None:
                raise DataError(f"{image_id}: its segmentation series holds no single DICOM SEG file.")
            stored = open_segmentation(file, slice_spacing_mm=scan.spacing_mm[2])
            if math.prod(stored.header.shape) > math.prod(scan.shape):
                raise DataError(
                    f"{image_id}: a segmentation of {stored.header.shape} voxels, its scan has {scan.shape}."
                )
            label = reordered(Volume(stored.voxels(), stored.header.affine), scan)
            if _referenced(file) >= len(list(self.series_folder(image_id).iterdir())):
                label = placed(label, scan)  # it knew the whole series: slices without a frame are empty ones
            return submitted_label(label, scan, self.structures, dict(stored.structures), image_id)
        except DataError as error:
            raise UnusableSegmentation(str(error)) from error
        except MemoryError as error:
            raise DataError(f"{image_id}: not enough memory for its segmentation now.") from error
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:  # whatever was sent
            reason = f"{image_id}: its segmentation cannot be read ({type(error).__name__})."
            raise UnusableSegmentation(reason) from error

    def _facts_of_label(self) -> dict[str, str]:
        """The series that the label will be in the archive: noted with the label, so that both are always the same."""
        return {SERIES: generate_uid()}

    def _keep_segmentation(self, image_id: str) -> None:
        """Upload the label; DataError if the archive does not take it."""
        label, folder = read_volume(self._file_of_label(image_id)), self._image_folder / image_id
        segmentation = self._as_dicom(label, folder, self.structures, algorithm=None)
        segmentation.SeriesInstanceUID = str(self._datastore.objects[image_id].labels[FINAL].info[SERIES])
        store_in_archive(self._client, segmentation)

    def propose(self, image_id: str, segmentation: Volume, weights: str) -> None:
        """Upload what a model with these weights has found, as an automatic segmentation, if the archive has it not.

        Its UIDs follow from study, number of its files and weights. Structures that were not found are left out, and
        with them a segmentation without any: OHIF cannot open an empty segment.
        """
        folder = self.series_folder(image_id)
        sources = [image_id, weights, str(_files_in(folder))]
        series, instance = (generate_uid(entropy_srcs=[part, *sources]) for part in ("series", "instance"))
        present = {number: name for number, name in self.structures.items() if (segmentation.array == number).any()}
        if not present or self._client.search_for_series(search_filters={"SeriesInstanceUID": series}):
            return
        maker, style = f"medssl {__version__}, weights {weights}", SegmentStyle(series_description="Proposal of medssl")
        proposal = self._as_dicom(segmentation, folder, present, algorithm=maker, style=style)
        proposal.SeriesInstanceUID = series
        proposal.SOPInstanceUID = proposal.file_meta.MediaStorageSOPInstanceUID = instance
        store_in_archive(self._client, proposal)

    def _as_dicom(self, labels: Volume, folder: Path, structures: Mapping[int, str], **options: Any) -> Dataset:
        """The labels as DICOM SEG for the series in `folder`; options as of write_segmentation."""
        file = self._image_folder / f".{secrets.token_hex(8)}.seg.part"
        try:
            write_segmentation(labels, folder, file, structures, **options)
            return dcmread(file)
        finally:
            file.unlink(missing_ok=True)


def _without_uids(error: DataError) -> str:
    return _UID.sub("<uid>", str(error))


def _referenced(file: Path) -> int:
    """How many instances of its series a DICOM SEG names; fewer than there are if it was drawn before they came."""
    listed = dcmread(file, specific_tags=["ReferencedSeriesSequence"]).get("ReferencedSeriesSequence", [])
    return sum(len(series.get("ReferencedInstanceSequence", [])) for series in listed)


class UnusableSegmentation(DataError):
    """A segmentation that never will be a label of its series, however often it is fetched."""


def _files_in(folder: Path) -> int:
    return sum(1 for _ in folder.iterdir()) if folder.is_dir() else 0
