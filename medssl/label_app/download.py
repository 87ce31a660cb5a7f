"""What is asked of a DICOMweb archive about one series; names in its files never become names of files here."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import requests
from dicomweb_client import DICOMwebClient
from pydicom.dataset import Dataset

from medssl.core.errors import DataError, MedsslError

ARCHIVE_AWAY = (ConnectionError, requests.ConnectionError, requests.Timeout)
_BUSY = (429, 502, 503, 504)  # an archive that may answer later; 500 is what a series gets that it cannot read


def download_series(client: DICOMwebClient, study: str, series: str, folder: Path) -> None:
    """Write the files of a series, numbered as they come, into the new folder; raises as faults_of_series."""
    folder.mkdir()
    with faults_of_series(series):
        for number, instance in enumerate(client.retrieve_series(study, series)):
            instance.save_as(folder / f"{number:05d}.dcm")


def find_series(client: DICOMwebClient, series: str) -> Dataset | None:
    """What the archive says of a series, None if it has none of this UID; raises as faults_of_series."""
    with faults_of_series(series):
        entries = map(Dataset.from_json, client.search_for_series(search_filters={"SeriesInstanceUID": series}))
        return next((entry for entry in entries if entry.SeriesInstanceUID == series), None)


def instances_of(series: Dataset) -> int:
    """How many files the archive has of a series it has found; 0 where it does not tell."""
    return int(series.get("NumberOfSeriesRelatedInstances") or 0)


@contextmanager
def faults_of_series(series: str) -> Iterator[None]:
    """What goes wrong in the block becomes a DataError of the series, unless the archive is away (ARCHIVE_AWAY)."""
    try:
        yield
    except (*ARCHIVE_AWAY, MedsslError):
        raise
    except Exception as error:  # a refusal of the archive, or whatever a damaged file makes pydicom raise
        if isinstance(error, requests.HTTPError) and error.response is not None and error.response.status_code in _BUSY:
            raise requests.ConnectionError(f"the archive is busy ({error.response.status_code})") from error
        raise DataError(
            f"{series}: the archive does not give it as it should ({type(error).__name__}). Send it there again."
        ) from error
