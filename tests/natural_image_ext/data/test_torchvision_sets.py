"""CIFAR and STL-10 in torchvision's own file formats, written here small: pixels, classes and parts come out right."""

import hashlib
import pickle

import numpy as np
import pytest
from torchvision import datasets

from medssl.core.errors import DataError
from natural_image_ext.data import open_images, read_image_split, read_picture, split_images

STL_CLASSES = ["airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck"]


def digest(path):
    return hashlib.md5(path.read_bytes()).hexdigest()


def write_cifar(folder, monkeypatch, kind, classes, label_key):
    """Files of 2 training batches and a test batch, 20 pictures each; the red value of a picture is its class."""
    folder.mkdir(parents=True)
    parts = {"train_list": ["data_batch_1", "data_batch_2"], "test_list": ["test_batch"]}
    for attribute, names in parts.items():
        entries = []
        for name in names:
            pixels = np.zeros((20, 3, 32, 32), np.uint8)
            labels = [number % classes for number in range(20)]
            pixels[:, 0], pixels[:, 2, 0, 5] = np.array(labels)[:, None, None], 99
            (folder / name).write_bytes(pickle.dumps({"data": pixels.reshape(20, -1), label_key: labels}))
            entries.append([name, digest(folder / name)])
        monkeypatch.setattr(kind, attribute, entries)
    meta = kind.meta
    (folder / meta["filename"]).write_bytes(pickle.dumps({meta["key"]: [f"class {i}" for i in range(classes)]}))
    monkeypatch.setattr(kind, "meta", {**meta, "md5": digest(folder / meta["filename"])})


@pytest.mark.parametrize(("name", "classes"), [("cifar10", 10), ("cifar100", 20)])
def test_cifar_files_are_read(name, classes, tmp_path, monkeypatch):
    kind = datasets.CIFAR10 if name == "cifar10" else datasets.CIFAR100
    key = "labels" if name == "cifar10" else "fine_labels"
    write_cifar(tmp_path / kind.base_folder, monkeypatch, kind, classes, key)
    source = open_images(name, tmp_path)
    parts = (len(source.train), len(source.test), len(source.unlabelled), source.size)
    assert parts == (40, 20, 0, 32) and source.num_classes == classes
    picture = read_picture(source.train.pictures[7])
    assert (
        picture.shape == (3, 32, 32) and int(picture[0].max()) == source.train.labels[7] and int(picture[2, 0, 5]) == 99
    )
    split = split_images(source, classes)
    assert split.counts == {"labelled": classes, "unlabelled": 40, "validation": 0, "test": 20}
    split.write(tmp_path / "split.json")
    again = read_image_split(tmp_path / "split.json")
    assert again.hash == split.hash and again.labelled.ids == split.labelled.ids
    assert set(split.test.ids).isdisjoint(split.unlabelled.ids)


def test_stl10_files_are_read_with_their_unlabelled_pictures(tmp_path, monkeypatch):
    folder = tmp_path / datasets.STL10.base_folder
    folder.mkdir()
    rng = np.random.default_rng(0)
    lists: dict[str, list] = {"train_list": [], "test_list": []}
    for attribute, name, count in (
        ("train_list", "train", 10),
        ("test_list", "test", 20),
        ("train_list", "unlabeled", 5),
    ):
        # as in the set: channels first, each of them by columns
        pixels = rng.integers(0, 256, (count, 3, 96, 96), dtype=np.uint8)
        pixels[0, 1, 3, 90] = 7  # column 3, row 90
        files = [(f"{name}_X.bin", pixels.tobytes())]
        if name != "unlabeled":
            files.append((f"{name}_y.bin", (np.arange(count, dtype=np.uint8) % 10 + 1).tobytes()))
        for file, content in files:
            (folder / file).write_bytes(content)
            lists[attribute].append([file, digest(folder / file)])
    for attribute, entries in lists.items():
        monkeypatch.setattr(datasets.STL10, attribute, entries)
    (folder / "class_names.txt").write_text("\n".join(STL_CLASSES))
    source = open_images("stl10", tmp_path)
    assert (len(source.train), len(source.test), len(source.unlabelled), source.size) == (10, 20, 5, 96)
    assert source.classes == tuple(STL_CLASSES) and source.train.labels == list(range(10))
    assert int(read_picture(source.unlabelled.pictures[0])[1, 90, 3]) == 7
    assert split_images(source, 10).counts == {"labelled": 10, "unlabelled": 15, "validation": 0, "test": 20}


def test_changed_pictures_do_not_pass_for_those_of_the_split(tmp_path, picture_dir):
    import shutil

    shutil.copytree(picture_dir, tmp_path / "set")
    split = split_images(open_images("folder", tmp_path / "set", size=16), 6)
    split.write(tmp_path / "split.json")
    assert read_image_split(tmp_path / "split.json").counts == split.counts
    shutil.copy(tmp_path / "set" / "red" / "00.png", tmp_path / "set" / "red" / "new.png")
    with pytest.raises(DataError, match="are not those of split"):
        read_image_split(tmp_path / "split.json")
    (tmp_path / "set" / "red" / "new.png").unlink()
    (tmp_path / "set" / split.labelled.ids[0]).unlink()
    with pytest.raises(DataError, match=r"is not in .* any more"):
        read_image_split(tmp_path / "split.json")
    (tmp_path / "split.json").write_text("{}")
    with pytest.raises(DataError, match="not a split file"):
        read_image_split(tmp_path / "split.json")
