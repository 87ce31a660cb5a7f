"""What a segmentation in a DICOMweb archive says of itself, and how one gets there."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timezone

from dicomweb_client import DICOMwebClient
from pydicom.dataset import Dataset
from pydicom.valuerep import DA, TM

from medssl.core.errors import DataError

_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_FAILURES = ("FailedSOPSequence", "OtherFailuresSequence")


@dataclass(frozen=True)
class Segmentation:
    """A segmentation that a person has seen: the series it is `of`, when it was made, its own study and series."""

    of: str
    made: datetime
    study: str
    series: str


def reviewed_segmentation(
    metadata: Dataset, study: str, series: str, structures: Mapping[int, str]
) -> Segmentation | None:
    """What the segmentation is of; None if it refers to nothing, no person has touched it, or no structure is known."""
    referenced, segments = metadata.get("ReferencedSeriesSequence"), metadata.get("SegmentSequence", [])
    kinds = {str(segment.get("SegmentAlgorithmType", "")) for segment in segments}
    names = {str(segment.get("SegmentLabel", "")).strip().casefold() for segment in segments}
    if not referenced or kinds == {"AUTOMATIC"} or not names & {name.casefold() for name in structures.values()}:
        return None
    return Segmentation(str(referenced[0].SeriesInstanceUID), made_at(metadata), study, series)


def made_at(metadata: Dataset) -> datetime:
    """When the content was made, by its time zone; in UTC where it names none, as OHIF does. Long ago if untold."""
    try:
        day, time = DA(str(metadata.ContentDate)), TM(str(metadata.get("ContentTime") or "000000"))
        zone = _zone(str(metadata.get("TimezoneOffsetFromUTC") or "+0000"))
        return datetime.combine(day, time, zone).astimezone(UTC)
    except (AttributeError, TypeError, ValueError, OverflowError):
        return _LONG_AGO


def store_in_archive(client: DICOMwebClient, dataset: Dataset) -> None:
    """Send a DICOM file to the archive; DataError if it answers that it has not taken it."""
    if refusal := refused(client.store_instances([dataset])):
        raise DataError(f"the archive has not taken the segmentation ({refusal}). See its log, then submit it again.")


def refused(answer: Dataset | None) -> str | None:
    """Why the archive has not stored all that was sent, by its answer to STOW-RS; None if it has."""
    failed = [item for name in _FAILURES for item in (answer.get(name) or [])] if answer is not None else []
    return f"failure reason {int(failed[0].get('FailureReason') or 0):#06x}" if failed else None


def _zone(offset: str) -> timezone:
    zone = datetime.strptime(offset, "%z").tzinfo
    return zone if isinstance(zone, timezone) else UTC
