"""The folder of studies: nothing leaves it, nothing is lost, everyone sees the same."""

import json
import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

from medssl.core.errors import DataError
from medssl.data.volumes import write_nifti

pytest.importorskip("monailabel", reason="needs pip install 'medssl[label]'")
from monailabel.interfaces.exception import ImageNotFoundException, LabelNotFoundException

from medssl.label_app.datastore import StudyDatastore

SHAPE = (6, 6, 4)


@pytest.fixture
def folder(tmp_path):
    studies = tmp_path / "studies"
    studies.mkdir()
    for name in ("a", "b", "c"):
        write_nifti(studies / f"{name}.nii.gz", np.arange(np.prod(SHAPE)).reshape(SHAPE), np.eye(4), np.int16)
    return studies


@pytest.fixture
def store(folder):
    return StudyDatastore(str(folder), {1: "kidney"})


def label_file(path, value=1):
    array = np.zeros(SHAPE, np.uint8)
    array[1:3] = value
    write_nifti(path, array, np.eye(4), np.uint8)
    return str(path)


def test_scans_of_the_folder_are_the_studies(store):
    assert sorted(store.list_images()) == sorted(store.get_unlabeled_images()) == ["a", "b", "c"]
    assert store.status()["total"] == 3


def test_a_data_sets_images_folder_is_taken(tmp_path):
    write_nifti(tmp_path / "images" / "x.nii.gz", np.arange(8).reshape(2, 2, 2), np.eye(4), np.int16)
    assert StudyDatastore(str(tmp_path), {1: "kidney"}).list_images() == ["x"]


def test_files_whose_name_is_no_id_are_left_out_with_a_warning(folder, caplog):
    write_nifti(folder / "Jane Doe.nii.gz", np.arange(8).reshape(2, 2, 2), np.eye(4), np.int16)
    assert "Jane Doe" not in StudyDatastore(str(folder), {1: "kidney"}).list_images()
    assert "1 files are left out" in caplog.text and "Jane" not in caplog.text


def test_submitted_label_is_kept_and_its_study_counts_as_reviewed(store, tmp_path):
    store.save_label("a", label_file(tmp_path / "l.nii.gz"), "final", {"who": "x"})
    assert store.get_labeled_images() == ["a"] and sorted(store.get_unlabeled_images()) == ["b", "c"]
    stored = nib.load(store.reviewed()["a"])
    assert np.asarray(stored.dataobj).sum() == 2 * 6 * 4 and store.get_label_info("a", "final")["who"] == "x"


def test_label_that_does_not_fit_is_refused_and_the_old_one_stays(store, tmp_path):
    store.save_label("a", label_file(tmp_path / "l.nii.gz"), "final", {})
    before = store.reviewed()["a"].read_bytes()
    with pytest.raises(DataError, match="id 7"):
        store.save_label("a", label_file(tmp_path / "l.nii.gz", value=7), "final", {})
    assert store.reviewed()["a"].read_bytes() == before


@pytest.mark.parametrize("name", ["../x", "..", "a/b", "/tmp/x", "a\0", "x" * 65, ""])
def test_names_that_lead_out_of_the_folder_are_refused(store, tmp_path, name):
    file = label_file(tmp_path / "l.nii.gz")
    before = sorted(path for path in tmp_path.rglob("*"))
    for call in (
        lambda: store.save_label("a", file, name or "..", {}),
        lambda: store.save_label(name, file, "final", {}),
        lambda: store.add_image(name or "..", file, {}),
    ):
        with pytest.raises(DataError):
            call()
    assert sorted(path for path in tmp_path.rglob("*")) == before


def test_only_volumes_are_stored(store, tmp_path):
    (tmp_path / "x.exe").write_bytes(b"MZ")
    with pytest.raises(DataError, match="exe"):
        store.save_label("a", str(tmp_path / "x.exe"), "draft", {})
    with pytest.raises(DataError, match="exe"):
        store.add_image("new", str(tmp_path / "x.exe"), {})


def test_unknown_studies_and_labels_are_not_found(store, tmp_path):
    with pytest.raises(ImageNotFoundException):
        store.save_label("zz", label_file(tmp_path / "l.nii.gz"), "draft", {})
    with pytest.raises(ImageNotFoundException):
        store.update_image_info("zz", {})
    with pytest.raises(LabelNotFoundException):
        store.update_label_info("a", "final", {})
    with pytest.raises(LabelNotFoundException):
        store.remove_label("a", "final")


def test_scans_are_added_once_and_never_deleted_over_the_network(store, folder, tmp_path):
    write_nifti(tmp_path / "s.nii.gz", np.arange(8).reshape(2, 2, 2), np.eye(4), np.int16)
    assert store.add_image("new", str(tmp_path / "s.nii.gz"), {}) == "new"
    with pytest.raises(DataError, match="already"):
        store.add_image("new", str(tmp_path / "s.nii.gz"), {})
    with pytest.raises(DataError, match="not deleted"):
        store.remove_image("new")
    assert (folder / "new.nii.gz").is_file() and "new" in store.list_images()


@pytest.mark.parametrize("info", ["x", ["x"], {"strategy": "x"}])
def test_facts_that_would_stop_the_next_sample_are_refused(store, tmp_path, info):
    store.save_label("a", label_file(tmp_path / "l.nii.gz"), "final", {})
    for change in (
        lambda: store.update_image_info("a", info),
        lambda: store.update_label_info("a", "final", info),
        lambda: store.add_image("new", label_file(tmp_path / "s.nii.gz"), info),
    ):
        with pytest.raises(DataError, match="JSON object"):
            change()


@pytest.mark.parametrize("name", ["id", "path", "score"])
def test_facts_that_would_be_taken_for_the_servers_answer_are_refused(store, name):
    with pytest.raises(DataError, match=name):
        store.update_image_info("a", {name: "x"})


@pytest.mark.parametrize("tag", ["original", "uncertainty", "outgrown"])
def test_what_the_server_stores_itself_is_not_changed_by_others(store, tmp_path, tag):
    store.save_result("a", label_file(tmp_path / "l.nii.gz"), tag, {"weights": "w"})
    file = Path(store.get_label_uri("a", tag))
    before = file.read_bytes()
    for change in (
        lambda: store.save_label("a", label_file(tmp_path / "l.nii.gz", value=5), tag, {}),
        lambda: store.remove_label("a", tag),
        lambda: store.update_label_info("a", tag, {"weights": "x"}),
    ):
        with pytest.raises(DataError, match=tag):
            change()
    assert file.read_bytes() == before and store.get_label_info("a", tag)["weights"] == "w"


def test_removed_label_is_gone_for_good(store, tmp_path):
    store.save_label("a", label_file(tmp_path / "l.nii.gz"), "final", {})
    file = store.reviewed()["a"]
    store.remove_label("a", "final")
    store.refresh()
    assert not file.exists() and not store.get_labeled_images()


def test_a_new_server_knows_labels_and_facts(store, folder, tmp_path):
    store.save_label("b", label_file(tmp_path / "l.nii.gz"), "final", {"who": "x"})
    store.update_image_info("c", {"medssl": {"score": 0.5}})
    again = StudyDatastore(str(folder), {1: "kidney"})
    assert again.get_labeled_images() == ["b"] and again.get_label_info("b", "final")["who"] == "x"
    assert again.get_image_info("c")["medssl"] == {"score": 0.5}


def test_scans_that_are_added_to_the_folder_are_found(store, folder):
    write_nifti(folder / "d.nii.gz", np.arange(8).reshape(2, 2, 2), np.eye(4), np.int16)
    store.refresh()
    assert "d" in store.list_images()


def test_damaged_facts_are_put_aside_and_no_label_is_lost(store, folder, tmp_path, caplog):
    store.save_label("a", label_file(tmp_path / "l.nii.gz"), "final", {})
    (folder / "datastore_v2.json").write_text('{"name": "x", "objects": {"a"')
    again = StudyDatastore(str(folder), {1: "kidney"})
    assert again.get_labeled_images() == ["a"] and sorted(again.list_images()) == ["a", "b", "c"]
    assert "damaged" in caplog.text and json.loads((folder / "datastore_v2.json").read_text())["objects"]["a"]


def test_folders_named_in_the_facts_are_not_followed(store, folder):
    path = folder / "datastore_v2.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "images_dir": "/etc", "labels_dir": "../.."}))
    again = StudyDatastore(str(folder), {1: "kidney"})
    assert again.get_image_uri("a").startswith(str(folder)) and not (folder.parent / "final").exists()


def test_two_processes_do_not_undo_each_others_changes(store, folder):
    other = StudyDatastore(str(folder), {1: "kidney"}, read_only=True)
    store.update_image_info("a", {"from": "first"})
    other.update_image_info("b", {"from": "second"})
    store.update_image_info("c", {"from": "first"})
    found = StudyDatastore(str(folder), {1: "kidney"})
    assert [found.get_image_info(name)["from"] for name in "abc"] == ["first", "second", "first"]


def test_threads_take_turns(store, tmp_path):
    file, faults = label_file(tmp_path / "l.nii.gz"), []

    def work(tag):
        try:
            for _ in range(10):
                store.save_label("a", file, tag, {})
                store.status()
                store.refresh()
        except Exception as error:
            faults.append(error)

    threads = [threading.Thread(target=work, args=(f"tag{i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults and set(store.get_labels_by_image_id("a")) == {f"tag{i}" for i in range(4)}


def _submit_for_ever(folder, file, acknowledged):
    store = StudyDatastore(folder, {1: "kidney"})
    for number in range(100_000):
        name = "abc"[number % 3]
        store.save_label(name, file, "final", {"number": number})
        os.write(acknowledged, f"{name}{number}\n".encode())


def test_a_kill_at_any_moment_loses_no_acknowledged_label(folder, tmp_path):
    file = label_file(tmp_path / "l.nii.gz")
    for attempt in range(6):
        reader, writer = os.pipe()
        process = multiprocessing.get_context("fork").Process(target=_submit_for_ever, args=(str(folder), file, writer))
        process.start()
        os.close(writer)
        first = os.read(reader, 64)
        time.sleep(0.013 * attempt)
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        lines = (first + _rest(reader)).decode().split("\n")[:-1]
        store = StudyDatastore(str(folder), {1: "kidney"})
        for name in {line[0] for line in lines}:
            last = max(int(line[1:]) for line in lines if line[0] == name)
            assert store.get_label_info(name, "final")["number"] >= last
            assert np.asarray(nib.load(store.reviewed()[name]).dataobj).sum() == 48
        assert not list(folder.rglob(".*.part"))


def _rest(reader):
    content = b""
    while part := os.read(reader, 65536):
        content += part
    os.close(reader)
    return content


def test_facts_of_many_levels_are_read_again_by_the_next_process(store, folder):
    deep = []
    for _ in range(300):
        deep = [deep]
    store.update_image_info("a", {"deep": deep})
    again = StudyDatastore(str(folder), {1: "kidney"})
    assert again.get_image_info("a")["deep"] == deep
