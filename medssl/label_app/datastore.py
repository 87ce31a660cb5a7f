"""MONAI Label's folder of scans and labels, made safe: names checked, files whole or not there, threads in turn."""

import contextlib
import json
import logging
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from monailabel.datastore.local import DataModel, ImageLabelModel, LocalDatastoreModel
from monailabel.interfaces.exception import ImageNotFoundException, LabelNotFoundException

from medssl.core.errors import DataError
from medssl.core.files import write_bytes_atomically, write_text_atomically
from medssl.data.volumes import read_header, write_nifti
from medssl.label_app.locked_datastore import LockedDatastore
from medssl.label_app.names import checked_name, is_name
from medssl.label_app.submitted import read_submitted
from medssl.label_app.tags import FINAL, tag_of_others
from medssl.label_app.workspace import EXTENSIONS

_ANSWERED = {"id", "path", "score", "failure", "waiting", "unscored"}  # MONAI Label lays a study's facts over these
_OF_LABELS = {"SeriesInstanceUID", "name", "ts"}  # what tells whether a label is the newest there is
FACTS = "medssl"  # among the facts of a study: what the model says of it; FACTS:<more> are our own, too
logger = logging.getLogger(__name__)


class StudyDatastore(LockedDatastore):
    """A folder of scans (or its `images/`), with labels below `labels/<tag>/` and facts in datastore_v2.json.

    A reviewed label (tag final) is checked and stored as classes of the model on the scan's grid. Every file is
    replaced as a whole, so that a kill at any moment loses nothing that was acknowledged; several processes may write.
    Scans that were added to the folder are found by `refresh`; files whose name is no id are left out.
    """

    _datastore: LocalDatastoreModel
    _config_ts: float

    def __init__(self, datastore_path: str, structures: Mapping[int, str], read_only: bool = False, **_: Any) -> None:
        self.structures = structures
        Path(datastore_path).mkdir(parents=True, exist_ok=True)
        self._processes = FileLock(Path(datastore_path) / ".lock", thread_local=False)
        self._left_out: set[str] = set()
        images_dir = "images" if (Path(datastore_path) / "images").is_dir() else "."
        super().__init__(datastore_path, images_dir, list(EXTENSIONS), read_only)
        if not read_only:
            self._remove_unfinished()

    @property
    def root(self) -> Path:
        return Path(self._datastore_path)

    @contextlib.contextmanager
    def changing(self) -> Iterator[dict[str, ImageLabelModel]]:
        """The entries of all studies, as they are on disk, for this thread of this process alone; then stored."""
        with self._threads, self._processes:
            self._init_from_datastore_file()
            yield self._datastore.objects
            self._update_datastore_file()

    def set_name(self, name: str) -> None:
        with self.changing():
            self._datastore.name = name

    def set_description(self, description: str) -> None:
        with self.changing():
            self._datastore.description = description

    def version(self, image_id: str) -> str:
        """Changes when more of a study arrives, as far as that is known without reading it; "" where studies do not."""
        return ""

    def add_image(self, image_id: str, image_filename: str, image_info: Mapping[str, Any] | None) -> str:
        """Copy a scan into the folder; DataError for a name that is none and for one that is taken."""
        stem, extension = self._to_id(Path(image_filename).name)
        image_id = checked_name(image_id or stem, "name of the scan")
        self._require_extension(extension)
        target, image_info = self._image_folder / f"{image_id}{extension}", _checked_facts(image_info or {})
        with self.changing() as entries:
            if image_id in entries:
                raise DataError(f"{image_id}: there is a scan of this name already. Give it another one.")
            write_bytes_atomically(target, Path(image_filename).read_bytes())
            entries[image_id] = ImageLabelModel(image=entry_of(image_info, target.name, extension))
        return image_id

    def remove_image(self, image_id: str) -> None:
        """DataError: a server that others talk to does not delete scans."""
        raise DataError(f"{image_id}: scans are not deleted over the network. Remove the file yourself.")

    def save_label(self, image_id: str, label_filename: str, label_tag: str, label_info: dict[str, Any] | None) -> str:
        """Store a label that somebody sends; of the tag final after `submitted_label` has made it the model's classes.

        Raises DataError for what cannot be trained on and for tags of the server's own, ImageNotFoundException for a
        study there is not.
        """
        return self._store_label(image_id, label_filename, tag_of_others(label_tag), label_info)

    def save_result(self, image_id: str, file: str, tag: str, info: dict[str, Any]) -> None:
        """Store what the model says of a study under one of the server's own tags; raises as save_label."""
        self._store_label(image_id, file, tag, info)

    def _store_label(self, image_id: str, label_filename: str, tag: str, label_info: dict[str, Any] | None) -> str:
        checked_name(image_id, "study")
        info = dict(label_info or {})
        extension = self._to_id(Path(label_filename).name)[1]
        self._require_extension(extension)
        scan = self.get_image_uri(image_id)
        if not scan:
            raise ImageNotFoundException(f"{image_id}: no such study")
        label = None
        if tag == FINAL:
            names, extension = info.get("label_info"), ".nii.gz"
            label = read_submitted(label_filename, read_header(scan), self.structures, names or [], image_id)
        file = Path(self._datastore.label_path(tag)) / f"{image_id}{extension}"
        with self.changing() as entries:  # the file, too: it and its facts are always of the same label
            if label is not None:
                write_nifti(file, label.array, label.affine, np.uint8)
            else:
                write_bytes_atomically(file, Path(label_filename).read_bytes())
            entries[image_id].labels[tag] = entry_of(info, file.name, extension)
        return image_id

    def remove_label(self, label_id: str, label_tag: str) -> None:
        """Remove the label's file and entry; DataError for one of the server's own."""
        label_tag = tag_of_others(label_tag)
        with self.changing() as entries:
            known = entries.get(label_id)
            removed = known.labels.pop(label_tag, None) if known else None
            if removed is None:
                raise LabelNotFoundException(f"{label_id}: no label {label_tag}")
            (Path(self._datastore.label_path(label_tag)) / f"{label_id}{removed.ext}").unlink(missing_ok=True)

    def update_image_info(self, image_id: str, info: Mapping[str, Any]) -> None:
        """Add facts to what is known of a study."""
        facts = _checked_facts(info)
        with self.changing() as entries:
            if image_id not in entries:
                raise ImageNotFoundException(f"{image_id}: no such study")
            entries[image_id].image.info.update(facts)

    def update_label_info(self, label_id: str, label_tag: str, info: Mapping[str, Any]) -> None:
        """Add facts to what is known of a label; DataError for one of the server's own."""
        facts, label_tag = _checked_facts(info), tag_of_others(label_tag)
        if own := _OF_LABELS & facts.keys():
            raise DataError(f"info: {', '.join(sorted(own))} are noted by the server alone. Choose another name.")
        with self.changing() as entries:
            label = entries[label_id].labels.get(label_tag) if label_id in entries else None
            if label is None:
                raise LabelNotFoundException(f"{label_id}: no label {label_tag}")
            label.info.update(facts)

    def reviewed(self) -> dict[str, Path]:
        """Study -> file of its reviewed label."""
        with self._threads:
            return {name: self._file_of_label(name) for name in self.get_labeled_images() if self._has_label(name)}

    def left_out(self) -> list[dict[str, str]]:
        """`study` and `reason` of reviews that could not be used; none where all are checked as they are submitted."""
        return []

    def _has_label(self, name: str) -> bool:
        entry = self._datastore.objects.get(name)
        return entry is not None and FINAL in entry.labels

    def _file_of_label(self, name: str) -> Path:
        return Path(self._datastore.label_path(FINAL)) / f"{name}{self._datastore.objects[name].labels[FINAL].ext}"

    @property
    def _image_folder(self) -> Path:
        return Path(self._datastore.image_path())

    def _require_extension(self, extension: str) -> None:
        if f"*{extension}" not in EXTENSIONS:
            expected = ", ".join(pattern.removeprefix("*") for pattern in EXTENSIONS)
            raise DataError(f"file that was sent: ends in '{extension[:16]}', expected {expected}.")

    def _list_files(self, path: str, patterns: Sequence[str]) -> dict[str, str]:
        files = super()._list_files(path, patterns)
        strange = {file for file in files if not is_name(self._to_id(file)[0])}
        if strange - self._left_out:
            self._left_out |= strange
            expected = "expected 1 to 64 letters, digits, '.', '-' or '_'. Rename them."
            logger.warning("%d files are left out for their names: %s", len(strange), expected)
        return {file: place for file, place in files.items() if file not in strange}

    def _reconcile_datastore(self) -> None:
        with self._threads, self._processes:
            super()._reconcile_datastore()

    def _init_from_datastore_file(self, throw_exception: bool = False) -> None:
        """Read datastore_v2.json if another process has written it; one that is damaged is put aside, and made anew."""
        path = Path(self._datastore_config_path)
        with self._threads, self._processes:
            stamp = path.stat().st_mtime if path.is_file() else None
            if stamp is None or stamp == self._config_ts:
                return
            try:
                loaded = LocalDatastoreModel.model_validate(json.loads(path.read_text()))
            except (ValueError, RecursionError):
                path.replace(path.with_name(f"{path.name}.damaged"))
                logger.warning("%s is damaged: it is put aside, and made anew from the scans and labels.", path.name)
                return
            loaded.base_path = self._datastore.base_path
            loaded.images_dir, loaded.labels_dir = self._datastore.images_dir, self._datastore.labels_dir
            self._datastore, self._config_ts = loaded, stamp

    def _update_datastore_file(self, lock: bool = True) -> None:
        content = json.dumps(self._datastore.model_dump(exclude={"base_path"}), indent=1, default=str)
        with self._threads, self._processes:
            write_text_atomically(self._datastore_config_path, content)
            self._config_ts = os.stat(self._datastore_config_path).st_mtime  # noqa: PTH116

    def _remove_unfinished(self) -> None:
        """Remove what a process that was killed left of the files it was writing."""
        for folder in {self.root, self._image_folder, *(self.root / "labels").glob("*/")}:
            for path in folder.glob(".*.part"):
                if path.is_dir():  # a series on its way
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink(missing_ok=True)


def entry_of(info: Mapping[str, Any] | None, name: str, extension: str) -> DataModel:
    """What MONAI Label notes of a file: its name, when it came, and `info`."""
    return DataModel(info={**(info or {}), "ts": int(time.time()), "name": name}, ext=extension)


def _checked_facts(info: Any) -> Mapping[str, Any]:
    """Facts that somebody sends; DataError for those that MONAI Label would stumble over at the next sample."""
    if not isinstance(info, Mapping) or not isinstance(info.get("strategy", {}), Mapping):
        raise DataError("info: expected a JSON object, whose `strategy`, if any, is one, too.")
    if taken := _ANSWERED & info.keys():
        raise DataError(
            f"info: {', '.join(sorted(taken))} would be taken for the server's answer. Choose another name."
        )
    return info
