"""Whatever MONAI Label asks of its datastore, no thread reads the entries while another one changes them."""

import contextlib
import inspect
import json
import zipfile

import numpy as np
import pytest

from medssl.core.errors import DataError
from medssl.data.volumes import write_nifti

pytest.importorskip("monailabel", reason="needs pip install 'medssl[label]'")
from monailabel.datastore.local import LocalDatastore, LocalDatastoreModel
from monailabel.interfaces.exception import MONAILabelException

from medssl.label_app import datastore
from medssl.label_app.datastore import StudyDatastore

# parts of the entries that say where files lie: set once, when the datastore is made
PLACES = {"base_path", "images_dir", "labels_dir", "image_path", "label_path", "labels_path"}
METHODS = sorted(name for name, _ in inspect.getmembers(LocalDatastore, callable) if not name.startswith("_"))


class WatchedEntries(LocalDatastoreModel):
    """The entries of all studies; `on_read` is called with the name of what is read of them."""

    def __getattribute__(self, name):
        if not name.startswith("_") and name not in PLACES:
            type(self).on_read(name)
        return super().__getattribute__(name)


@pytest.fixture
def watched(tmp_path, monkeypatch):
    """A datastore of three scans, one of them labelled, and a list of what is read of its entries without the lock."""
    folder, unguarded = tmp_path / "studies", []
    for name in ("a", "b", "c"):
        write_nifti(folder / f"{name}.nii.gz", np.arange(24).reshape(2, 3, 4), np.eye(4), np.int16)
    write_nifti(tmp_path / "label.nii.gz", np.ones((2, 3, 4)), np.eye(4), np.uint8)
    StudyDatastore(str(folder), {1: "kidney"}).save_label("a", str(tmp_path / "label.nii.gz"), "final", {})
    monkeypatch.setattr(WatchedEntries, "on_read", lambda name: None, raising=False)
    monkeypatch.setattr(datastore, "LocalDatastoreModel", WatchedEntries)
    store = StudyDatastore(str(folder), {1: "kidney"})
    assert isinstance(store._datastore, WatchedEntries)

    def note(name):
        if not store._threads._is_owned():
            unguarded.append(name)

    monkeypatch.setattr(WatchedEntries, "on_read", note)
    return store, unguarded


def call(store, name, folder):
    """Call a method of MONAI Label with an argument of its kind for each name; KeyError for a name not known here."""
    arguments = {
        **{"image_id": "a", "label_id": "a", "tag": "final", "label_tag": "draft", "labels": None, "params": None},
        **{"info": {"x": 1}, "image_info": {}, "label_info": {}, "full_path": True, "limit_cases": 1},
        **{"label_filename": str(folder / "label.nii.gz"), "image_filename": str(folder / "label.nii.gz")},
        **{"name": "studies", "description": "of kidneys"},
    }
    wanted = inspect.signature(getattr(LocalDatastore, name)).parameters
    with contextlib.suppress(DataError, MONAILabelException):  # to refuse is fine, if nothing was read on the way
        getattr(store, name)(**{word: arguments[word] for word in wanted if word != "self"})


@pytest.mark.parametrize("name", METHODS)
def test_no_method_of_monai_label_reads_the_entries_without_the_lock(watched, tmp_path, name):
    store, unguarded = watched
    call(store, name, tmp_path)
    assert not unguarded, f"StudyDatastore has to override {name}, which reads {unguarded} without the lock"


def test_a_method_that_monai_label_may_get_and_that_is_not_guarded_is_noticed(watched, tmp_path, monkeypatch):
    store, unguarded = watched
    newest = lambda self, image_id: self._datastore.objects[image_id]  # noqa: E731
    monkeypatch.setattr(LocalDatastore, "newest", newest, raising=False)
    call(store, "newest", tmp_path)
    assert unguarded == ["objects"]


def test_methods_answer_as_monai_labels_own_do(watched, tmp_path):
    store, _ = watched
    plain = LocalDatastore(str(tmp_path / "studies"))
    assert store.status() == plain.status() == {"total": 3, "completed": 1, "label_tags": {"final": 1}}
    assert store.datalist() == plain.datalist() and len(store.datalist()) == 1
    assert store.json() == plain.json()
    assert store.get_labels_by_image_id("a") == plain.get_labels_by_image_id("a") == {"final": "a"}
    assert store.get_label_uri("a", "final") == plain.get_label_uri("a", "final")
    assert store.get_image_info("b") == plain.get_image_info("b")


def test_name_and_description_are_kept(watched, tmp_path):
    store, _ = watched
    store.set_name("kidneys")
    store.set_description("of phantoms")
    again = StudyDatastore(str(tmp_path / "studies"), {1: "kidney"})
    assert (again.name(), again.description()) == ("kidneys", "of phantoms")


def test_archive_of_the_data_set_holds_reviewed_scans_labels_and_facts(watched):
    store, _ = watched
    with zipfile.ZipFile(store.get_dataset_archive(None)) as archive:
        assert sorted(archive.namelist()) == ["image/a.nii.gz", "label/a.nii.gz", "metadata.json"]
        assert set(json.loads(archive.read("metadata.json"))["objects"]) == {"a", "b", "c"}


def test_archive_is_refused_while_nothing_is_reviewed(watched):
    store, _ = watched
    store.remove_label("a", "final")
    with pytest.raises(DataError, match="nothing to send"):
        store.get_dataset_archive(None)
