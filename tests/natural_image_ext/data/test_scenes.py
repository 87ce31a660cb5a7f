"""Images with masks: layouts of the data sets, lists of the literature, films kept apart, what is wrong is named."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from medssl.errors import ConfigError, DataError
from natural_image_ext.data import (
    SceneViews,
    SemiSupervisedScenes,
    check_scenes,
    make_scene_loader,
    open_scenes,
    read_mask,
    read_scene_split,
    split_scenes,
)


def save(path, values):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.asarray(values, dtype=np.uint8)).save(path)


@pytest.fixture
def source(scene_dir):
    return open_scenes("folder", scene_dir)


def test_folder_of_images_and_masks_is_read(source):
    assert len(source.train) == 16 and source.classes == ("class 0", "class 1", "class 2") and source.void == 255
    assert source.train.ids[0] == "images/a_0" and source.run_facts()["task"] == "scenes"
    assert open_scenes("folder", source.root, ["ground", "red", "blue"]).classes == ("ground", "red", "blue")


def test_test_images_are_the_ends_of_the_films(source):
    split = split_scenes(source, 4, validation=1, test=0.25, seed=3)
    assert split.counts == {"labelled": 3, "unlabelled": 8, "validation": 1, "test": 4}
    assert split.test.ids == ["images/a_6", "images/a_7", "images/b_6", "images/b_7"]
    again, other = split_scenes(source, 4, 1, 0.25, seed=3), split_scenes(source, 4, 1, 0.25, seed=4)
    assert again.hash == split.hash != other.hash and other.test.ids == split.test.ids


def test_split_is_written_once_and_read_again(source, tmp_path):
    split = split_scenes(source, 0.5)
    split.write(tmp_path / "split.json")
    split.write(tmp_path / "split.json")
    again = read_scene_split(tmp_path / "split.json")
    assert again == split
    with pytest.raises(ConfigError, match="this run would use"):
        split_scenes(source, 0.5, seed=9).write(tmp_path / "split.json")
    text = (tmp_path / "split.json").read_text().replace("images/a_0", "images/a_x")
    (tmp_path / "split.json").write_text(text)
    with pytest.raises(DataError, match="Was it edited"):
        read_scene_split(tmp_path / "split.json")


def test_numbers_that_cannot_be_are_refused(source):
    for keys, part in (
        ({"labelled": 100}, "have a mask"),
        ({"labelled": 0}, "above 0"),
        ({"labelled": 2, "validation": 2}, "left to learn from"),
        ({"labelled": 2, "test": 0.01}, "left for testing"),
    ):
        with pytest.raises(ConfigError, match=part):
            split_scenes(source, **keys)


def test_lists_of_the_literature_are_followed(scene_dir, tmp_path):
    root = tmp_path / "set"
    shutil.copytree(scene_dir, root)
    source = open_scenes("folder", root)
    lists = tmp_path / "lists"
    lists.mkdir()
    (lists / "labeled.txt").write_text("images/a_1.png masks/a_1.png\nimages/b_0.png masks/b_0.png\n")
    (lists / "unlabeled.txt").write_text("images/a_2.png masks/a_2.png\nimages/a_3.png\n")
    split = split_scenes(source, 1, lists_dir=lists)
    assert split.labelled.ids == ["images/a_1", "images/b_0"] and split.unlabelled.ids == ["images/a_2", "images/a_3"]
    (lists / "unlabeled.txt").write_text("images/a_7.png\n")
    with pytest.raises(DataError, match="images/a_7: is both unlabelled and test"):
        split_scenes(source, 1, lists_dir=lists)
    (lists / "unlabeled.txt").write_text("images/zz.png\n")
    with pytest.raises(DataError, match=r"unlabeled\.txt, line 1: .*zz\.png is not there"):
        split_scenes(source, 1, lists_dir=lists)
    (lists / "unlabeled.txt").write_text("images/a_2.png\n")
    (lists / "labeled.txt").write_text("images/a_1.png\n")
    with pytest.raises(DataError, match="have no mask"):
        split_scenes(source, 1, lists_dir=lists)


@pytest.mark.realdata
def test_lists_for_pascal_and_cityscapes_fit_their_layouts(shared_data, tmp_path):
    """The images are not here, so empty files with their names stand in for them."""
    for name, folder in (("voc", "pascal/92"), ("cityscapes", "cityscapes/1_16")):
        root, names = tmp_path / name, []
        for part in ("labeled", "unlabeled"):
            names += (shared_data / "splits" / folder / f"{part}.txt").read_text().split()
        for file in names:
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            (root / file).touch()
        if name == "voc":
            lists = root / "ImageSets" / "Segmentation"
            lists.mkdir(parents=True)
            for part in ("train", "val"):
                save(root / "JPEGImages" / f"{part}_1.jpg", np.zeros((4, 4, 3)))
                (lists / f"{part}.txt").write_text(f"{part}_1\n")
        else:
            save(root / "leftImg8bit" / "val" / "ulm" / "ulm_1_leftImg8bit.png", np.zeros((4, 4, 3)))
        source = open_scenes(name, root)
        split = split_scenes(source, 1, lists_dir=shared_data / "splits" / folder)
        assert source.num_classes == {"voc": 21, "cityscapes": 19}[name]
        assert split.counts["labelled"] == {"voc": 92, "cityscapes": 186}[name] and split.counts["test"] == 1


def test_folder_without_films_is_cut_once(tmp_path):
    for number in range(8):
        save(tmp_path / "images" / f"{number:03d}.png", np.zeros((4, 4, 3)))
        save(tmp_path / "masks" / f"{number:03d}.png", [[0, 1, 1, 0]] * 4)
    split = split_scenes(open_scenes("folder", tmp_path), 2, test=0.25)
    assert split.test.ids == ["images/006", "images/007"] and split.counts["unlabelled"] == 4


def test_unlabelled_images_of_a_list_need_no_mask_and_coarse_masks_of_voc_are_found(tmp_path):
    for name in ("a", "b", "c", "t"):
        save(tmp_path / "JPEGImages" / f"{name}.jpg", np.zeros((4, 4, 3)))
    save(tmp_path / "SegmentationClass" / "a.png", [[0, 1]])
    save(tmp_path / "SegmentationClass" / "t.png", [[0, 1]])
    save(tmp_path / "SegmentationClassAug" / "b.png", [[0, 1]])
    (tmp_path / "ImageSets" / "Segmentation").mkdir(parents=True)
    (tmp_path / "ImageSets" / "Segmentation" / "train.txt").write_text("a\n")
    (tmp_path / "ImageSets" / "Segmentation" / "val.txt").write_text("t\n")
    source = open_scenes("voc", tmp_path)
    assert [(Path(i).name, mask is not None) for i, mask in zip(source.train.ids, source.train.masks, strict=True)] == [
        ("a", True),
        ("b", True),
    ]
    (tmp_path / "labeled.txt").write_text("JPEGImages/b.jpg SegmentationClass/b.png\n")
    (tmp_path / "unlabeled.txt").write_text("JPEGImages/c.jpg SegmentationClass/c.png\n")
    split = split_scenes(source, 1, lists_dir=tmp_path)
    assert split.labelled.masks[0].parent.name == "SegmentationClassAug" and split.unlabelled.masks == [None]


def test_checks_are_not_believed_under_other_rules(scene_dir, tmp_path):
    split = split_scenes(open_scenes("folder", scene_dir), 4)
    with pytest.raises(DataError, match="expected 0 to 1"):
        check_scenes(split, 2, 255, tmp_path)
    check_scenes(split, 3, 255, tmp_path)


def test_camvid_has_its_void(tmp_path):
    save(tmp_path / "train" / "x_1.png", np.zeros((4, 4, 3)))
    save(tmp_path / "trainannot" / "x_1.png", [[0, 11, 10, 3]])
    source = open_scenes("camvid", tmp_path)
    assert source.num_classes == 11 and source.void == 11
    assert read_mask(source.train.masks[0], 11, source.void).tolist() == [[0, 255, 10, 3]]


def test_image_without_a_mask_is_unlabelled(scene_dir, tmp_path):
    root = tmp_path / "set"
    shutil.copytree(scene_dir, root)
    (root / "masks" / "a_0.png").unlink()
    split = split_scenes(open_scenes("folder", root), 11)
    assert "images/a_0" in split.unlabelled.ids and split.counts["labelled"] == 11


def test_bad_images_and_masks_are_named(scene_dir, tmp_path):
    root = tmp_path / "set"
    shutil.copytree(scene_dir, root)
    save(root / "masks" / "a_1.png", np.zeros((10, 48)))
    save(root / "masks" / "a_2.png", np.full((40, 48), 7))
    save(root / "masks" / "a_3.png", np.zeros((40, 48, 3)))
    (root / "masks" / "b_1.png").write_bytes(b"no mask")
    (root / "images" / "b_2.png").write_bytes(b"no image")
    split = split_scenes(open_scenes("folder", root, ["a", "b", "c"]), 4)
    with pytest.raises(DataError) as caught:
        check_scenes(split, 3, 255, tmp_path)
    text = str(caught.value)
    for part in (
        "a_1.png: 48x10 pixels, its image has 48x40",
        "a_2.png: class numbers [7], expected 0 to 2",
        "a_3.png: shape (40, 48, 3), uint8, expected one class number",
        "b_1.png: not a readable mask",
        "b_2.png: not a readable picture",
    ):
        assert part in text, part


def test_missing_things_are_named(tmp_path):
    for name, part in (("voc", r"train\.txt: no such file"), ("cityscapes", "no image"), ("camvid", "no such folder")):
        with pytest.raises(DataError, match=part):
            open_scenes(name, tmp_path)
    with pytest.raises(ConfigError, match="'ade' is unknown"):
        open_scenes("ade", tmp_path)
    with pytest.raises(DataError, match="no such folder"):
        open_scenes("voc", tmp_path / "nothing")


def loaded(source, epoch=1, **changes):
    views = SceneViews(24, changes.pop("size", None), changes.pop("strong", "colour"))
    dataset = SemiSupervisedScenes(split_scenes(source, 4), views, 3)
    loader = make_scene_loader(dataset, **{"batch_size": 2, "steps": 3, "seed": 0, **changes})
    loader.sampler.set_epoch(epoch)
    return list(loader)


@pytest.mark.parametrize("strong", ["colour", "augseg"])
def test_batches_have_crops_of_images_and_masks_alike(source, strong):
    for batch in loaded(source, strong=strong):
        assert batch["image"].shape == batch["weak"].shape == batch["strong"].shape == (2, 3, 24, 24)
        assert batch["label"].shape == (2, 24, 24) and len(batch["id"]) == 2
        assert set(batch["label"].unique().tolist()) <= {0, 1, 2, 255}
        red, blue = batch["image"][:, 0], batch["image"][:, 2]
        if (batch["label"] == 1).any() and (batch["label"] == 2).any():
            assert (red - blue)[batch["label"] == 1].mean() > 1 > -1 > (red - blue)[batch["label"] == 2].mean()
        assert not torch.equal(batch["weak"], batch["strong"])


def test_batches_follow_from_seed_and_epoch_whatever_the_workers(source):
    first = loaded(source)
    torch.manual_seed(99)
    for again in (loaded(source), loaded(source, num_workers=1)):
        for a, b in zip(first, again, strict=True):
            assert all(torch.equal(a[key], b[key]) for key in ("image", "label", "weak", "strong"))
    for changed in (loaded(source, epoch=2), loaded(source, seed=3)):
        assert any(not torch.equal(a["weak"], b["weak"]) for a, b in zip(first, changed, strict=True))


def test_split_without_unlabelled_images_is_refused(source):
    with pytest.raises(ConfigError, match="no unlabelled images"):
        SemiSupervisedScenes(split_scenes(source, 12), SceneViews(24), 3)
