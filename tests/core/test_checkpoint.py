"""Checkpoints come back as they were written, in order of their epochs, and hold no code."""

import os
import pickle
import zipfile

import pytest
import torch

from medssl.core.errors import CheckpointError
from medssl.engine import CheckpointStore, load_tensors, save_tensors


def state(value: float = 1.0) -> dict:
    return {"weights": torch.full((4, 3), value), "epoch": 7, "names": ["a", "b"], "nested": {"lr": 0.25}}


def test_state_comes_back_as_it_was_saved(tmp_path):
    path = CheckpointStore(tmp_path / "new" / "folder").save(state(0.125), epoch=7)
    loaded = load_tensors(path)
    assert path.name == "epoch_0007.pt"
    assert torch.equal(loaded.pop("weights"), torch.full((4, 3), 0.125))
    assert loaded == {"epoch": 7, "names": ["a", "b"], "nested": {"lr": 0.25}}


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_only_the_last_checkpoints_are_kept(tmp_path, keep):
    store = CheckpointStore(tmp_path, keep)
    for epoch in range(1, 6):
        store.save(state(epoch), epoch)
    kept = [f"epoch_{epoch:04d}.pt" for epoch in range(1, 6)][-keep:]
    assert [path.name for path in store.files()] == kept
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(kept + [f"{name}.sha256" for name in kept])


def test_newest_is_the_highest_epoch_beyond_four_digits_too(tmp_path):
    store = CheckpointStore(tmp_path)
    for epoch in (9998, 9999, 10000):
        store.save(state(epoch), epoch)
    loaded, path = store.load_latest()
    assert path.name == "epoch_10000.pt" and float(loaded["weights"][0, 0]) == 10000
    assert [path.name for path in store.files()] == ["epoch_9999.pt", "epoch_10000.pt"]


def test_what_was_just_saved_is_never_the_one_removed(tmp_path):
    store = CheckpointStore(tmp_path, keep=1)
    store.save(state(), epoch=6)  # say, damaged: the run went back and comes past it again
    path = store.save(state(), epoch=5)
    assert path.is_file()


def test_no_checkpoint_at_all_is_an_error_with_a_way_out(tmp_path):
    with pytest.raises(CheckpointError, match="no checkpoint to resume from"):
        CheckpointStore(tmp_path / "none").load_latest()
    with pytest.raises(CheckpointError, match=r"weights\.pt: no such checkpoint"):
        load_tensors(tmp_path / "weights.pt")


def test_other_files_in_the_folder_are_left_alone(tmp_path):
    (tmp_path / "epoch_best.pt").write_text("mine")
    (tmp_path / "notes.txt").write_text("mine")
    store = CheckpointStore(tmp_path, keep=1)
    store.save(state(), 1)
    store.save(state(), 2)
    assert (tmp_path / "epoch_best.pt").read_text() == (tmp_path / "notes.txt").read_text() == "mine"


class RunsCode:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (str(self.marker),)


@pytest.mark.parametrize("how", ["torch", "pickle"])
def test_file_with_code_is_refused_and_the_code_does_not_run(tmp_path, how):
    path, marker = tmp_path / "epoch_0001.pt", tmp_path / "was_here"
    if how == "torch":
        torch.save({"weights": RunsCode(marker)}, path)
    else:
        path.write_bytes(pickle.dumps(RunsCode(marker)))
    with pytest.raises(CheckpointError, match=r"epoch_0001\.pt"):
        load_tensors(path)
    assert not marker.exists()


def test_digest_that_travelled_without_its_file_is_not_needed(tmp_path):
    path = tmp_path / "model.pt"
    save_tensors(state(), path)
    (tmp_path / "model.pt.sha256").unlink()
    assert torch.equal(load_tensors(path)["weights"], torch.ones(4, 3))


def test_flipped_weight_is_found_without_the_digest_too(tmp_path):
    path = tmp_path / "model.pt"
    save_tensors(state(), path)
    (tmp_path / "model.pt.sha256").unlink()
    with zipfile.ZipFile(path) as archive:
        entry = next(info for info in archive.infolist() if info.filename.endswith("data/0"))
    content = bytearray(path.read_bytes())
    where = content.index(torch.ones(12).numpy().tobytes(), entry.header_offset)
    content[where + 3] ^= 0x40
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"model\.pt: damaged"):
        load_tensors(path)


def test_file_that_is_no_checkpoint_is_named(tmp_path):
    (tmp_path / "model.pt").write_text("<html>404 not found</html>")
    with pytest.raises(CheckpointError, match=r"model\.pt: not a readable checkpoint"):
        load_tensors(tmp_path / "model.pt")
