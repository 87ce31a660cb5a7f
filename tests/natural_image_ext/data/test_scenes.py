"""Images with masks: layouts of the data sets, lists of the literature, films kept apart, what is wrong is named."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from medssl.core.errors import ConfigError, DataError
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
from natural_image_ext.data.scenes import Scenes, SceneSource


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
        ({"labelled": 100}, r"have a mask, this asks for 100 of them\. Ask for 1 to 12\."),
        ({"labelled": 0.01}, r"labelled 0\.01: 12 .* have a mask, this asks for 0 of them\. Ask for 1 to 12\."),
        ({"labelled": 0}, "above 0"),
        ({"labelled": 2, "validation": 2}, "left to learn from"),
        ({"labelled": 2, "test": 0.01}, "left for testing"),
    ):
        with pytest.raises(ConfigError, match=part):
            split_scenes(source, **keys)


def voc_lists(root, train, val):
    """VOC's lists of images, and the images."""
    lists = root / "ImageSets" / "Segmentation"
    lists.mkdir(parents=True)
    for part, names in (("train", train), ("val", val)):
        (lists / f"{part}.txt").write_text("".join(f"{name}\n" for name in names))
        for name in names:
            save(root / "JPEGImages" / f"{name}.jpg", np.zeros((4, 4, 3)))


@pytest.fixture
def pascal(tmp_path):
    """VOC with eight images of train.txt, one of val.txt, and masks of SBD of all of them and forty others."""
    train, extra = [f"fine_{i}" for i in range(8)], [f"coarse_{i}" for i in range(40)]
    voc_lists(tmp_path, train, ["val_0"])
    for name in (*train, "val_0"):
        save(tmp_path / "SegmentationClass" / f"{name}.png", [[0, 1]])
    for name in (*train, "val_0", *extra):
        save(tmp_path / "JPEGImages" / f"{name}.jpg", np.zeros((4, 4, 3)))
        save(tmp_path / "SegmentationClassAug" / f"{name}.png", [[0, 1]])
    return tmp_path


def films(scenes):
    return {Path(name).name.split("_")[0] for name in scenes.ids}


@pytest.mark.parametrize("seed", range(3))
def test_classic_voc_draws_labelled_images_of_train_txt_and_sbd_adds_unlabelled_ones(pascal, seed):
    split = split_scenes(open_scenes("voc", pascal), 0.5, seed=seed)
    assert split.counts == {"labelled": 4, "unlabelled": 44, "validation": 0, "test": 1}
    assert films(split.labelled) == {"fine"} and {m.parent.name for m in split.labelled.masks} == {"SegmentationClass"}
    coarse = [mask for i, mask in zip(split.unlabelled.ids, split.unlabelled.masks, strict=True) if "coarse" in i]
    assert coarse == [None] * 40 and split.origin["dataset"] == "voc"
    with pytest.raises(ConfigError, match="labelled 9: 8 training images have a mask"):
        split_scenes(open_scenes("voc", pascal), 9)


def test_blender_voc_draws_labelled_images_among_all_that_have_a_mask(pascal):
    split = split_scenes(open_scenes("voc_blender", pascal), 0.5)
    assert split.counts == {"labelled": 24, "unlabelled": 24, "validation": 0, "test": 1}
    assert films(split.labelled) == {"fine", "coarse"} and films(split.test) == {"val"}
    for name, mask in zip(split.labelled.ids, split.labelled.masks, strict=True):
        assert mask.parent.name == ("SegmentationClassAug" if "coarse" in name else "SegmentationClass")


def test_voc_uses_what_there_is_of_sbd(pascal):
    shutil.rmtree(pascal / "SegmentationClassAug")
    assert split_scenes(open_scenes("voc", pascal), 4).counts["unlabelled"] == 4
    with pytest.raises(DataError, match=r"SegmentationClassAug: no mask .* --dataset_name voc"):
        open_scenes("voc_blender", pascal)
    listed = ["fine_0", "coarse_3", "JPEGImages/coarse_5.jpg SegmentationClassAug/coarse_5.png", "val_0"]
    (pascal / "ImageSets" / "Segmentation" / "trainaug.txt").write_text("\n".join(listed))
    split = split_scenes(open_scenes("voc", pascal), 8)
    assert split.unlabelled.ids == ["JPEGImages/coarse_3", "JPEGImages/coarse_5"]
    save(pascal / "SegmentationClass" / "coarse_5.png", [[0, 1]])  # all masks in one folder, as some keep them
    assert sum(mask is not None for mask in open_scenes("voc_blender", pascal).train.masks) == 9


def test_folder_without_films_is_cut_once(tmp_path):
    for number in range(8):
        save(tmp_path / "images" / f"{number:03d}.png", np.zeros((4, 4, 3)))
        save(tmp_path / "masks" / f"{number:03d}.png", [[0, 1, 1, 0]] * 4)
    split = split_scenes(open_scenes("folder", tmp_path), 2, test=0.25)
    assert split.test.ids == ["images/006", "images/007"] and split.counts["unlabelled"] == 4


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


@pytest.mark.parametrize(
    ("dataset", "total", "numbers"),
    [
        ("voc_blender", 10_582, [662, 1323, 2646, 5291]),
        ("voc", 1464, [92, 183, 366, 732]),
        ("cityscapes", 2975, [186, 372, 744, 1488]),
    ],
)
def test_shares_are_the_numbers_of_the_literature(dataset, total, numbers):
    scenes = Scenes([Path(f"{n}.png") for n in range(total)], [Path("m.png")] * total, [str(n) for n in range(total)])
    test = Scenes([Path("t.png")], [Path("m.png")], ["t"])
    source = SceneSource(dataset, Path("/data"), scenes, test, ("a", "b"), 255)
    shares = (1 / 16, 1 / 8, 1 / 4, 1 / 2)
    assert [split_scenes(source, share).counts["labelled"] for share in shares] == numbers
