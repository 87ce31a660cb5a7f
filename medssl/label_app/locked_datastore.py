"""MONAI Label's folder of scans and labels, read by one thread at a time: none meets a change half-way."""

import json
import tempfile
import threading
import zipfile
from pathlib import Path
from typing import Any

from monailabel.datastore.local import LocalDatastore

from medssl.core.errors import DataError


class LockedDatastore(LocalDatastore):
    """Every method of MONAI Label that reads the entries does so while it holds `_threads`.

    Those that only call others (get_image, get_label, get_label_by_image_id, refresh) stay as they are: reading a file
    needs no lock, as files are replaced as a whole, and bringing one may take long. What changes entries is up to the
    subclass. A test compares this with what MONAI Label has.
    """

    def __init__(self, datastore_path: str, images_dir: str, extensions: list[str], read_only: bool) -> None:
        self._threads = threading.RLock()
        super().__init__(datastore_path, images_dir, extensions=extensions, read_only=read_only)

    def name(self) -> str:
        with self._threads:
            return super().name()

    def description(self) -> str:
        with self._threads:
            return super().description()

    def list_images(self) -> list[str]:
        with self._threads:
            return super().list_images()

    def get_labeled_images(self, label_tag: str | None = None, labels: list[str] | None = None) -> list[str]:
        with self._threads:
            return super().get_labeled_images(label_tag, labels)

    def get_unlabeled_images(self, label_tag: str | None = None, labels: list[str] | None = None) -> list[str]:
        with self._threads:
            return super().get_unlabeled_images(label_tag, labels)

    def get_image_uri(self, image_id: str) -> str:
        with self._threads:
            return super().get_image_uri(image_id)

    def get_image_info(self, image_id: str) -> dict[str, Any]:
        with self._threads:
            return super().get_image_info(image_id)

    def get_label_uri(self, label_id: str, label_tag: str) -> str:
        with self._threads:
            return super().get_label_uri(label_id, label_tag)

    def get_label_info(self, label_id: str, label_tag: str) -> dict[str, Any]:
        with self._threads:
            return super().get_label_info(label_id, label_tag)

    def get_labels_by_image_id(self, image_id: str) -> dict[str, str]:
        with self._threads:
            return super().get_labels_by_image_id(image_id)

    def datalist(self, full_path: bool = True) -> list[dict[str, Any]]:
        with self._threads:
            return super().datalist(full_path)

    def status(self) -> dict[str, Any]:
        with self._threads:
            return super().status()

    def json(self) -> Any:
        with self._threads:
            return super().json()

    def get_dataset_archive(self, limit_cases: int | None) -> str:
        """A new zip file of reviewed scans, their labels and metadata.json; DataError while nothing is reviewed.

        MONAI Label's own method reads the entries while it zips. With the lock held for all of it, it would wait for
        series to be brought, and whoever brings one waits for the lock.
        """
        cases = self.datalist()
        if not cases:
            raise DataError("dataset: no study is reviewed yet, so there is nothing to send. Submit a label first.")
        if limit_cases and 0 < limit_cases < len(cases):
            cases = cases[:limit_cases]
        with tempfile.NamedTemporaryFile(delete=False) as file, zipfile.ZipFile(file, "w") as archive:
            for case in cases:
                for part, path in case.items():
                    archive.write(path, f"{part}/{Path(path).name}")
            archive.writestr("metadata.json", json.dumps(self.json(), default=str))
        return file.name
