"""Image folders, balanced splits and seeded views; what is wrong with a set is said clearly."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from medssl.core.errors import ConfigError, DataError
from natural_image_ext.bundle import PictureData
from natural_image_ext.data import (
    LabelledPictures,
    SemiSupervisedPictures,
    Views,
    check_pictures,
    make_picture_loader,
    open_images,
    read_image_split,
    read_picture,
    split_images,
)

CLASSES = ("cat", "dog", "owl")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twelve pictures of 16x16 pixels in each of three class folders."""
    rng = np.random.default_rng(0)
    for name in CLASSES:
        (tmp_path / name).mkdir()
        for number in range(12):
            pixels = rng.integers(0, 256, (16, 16, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / name / f"{number:02d}.png")
    return tmp_path


@pytest.fixture
def source(folder: Path):
    return open_images("folder", folder, size=16)


def names(pictures) -> set[str]:
    return {f"{path.parent.name}/{path.name}" for path in pictures.pictures}


def test_class_folders_are_read(source):
    assert source.classes == CLASSES and len(source.train) == 36 and source.size == 16
    assert [source.train.labels.count(label) for label in range(3)] == [12, 12, 12]


def test_split_is_balanced_and_test_and_validation_are_apart(source):
    split = split_images(source, labelled=12, validation=3, test=0.25, seed=1)
    assert split.counts == {"labelled": 9, "unlabelled": 24, "validation": 3, "test": 9}
    for part in (split.labelled, split.validation, split.test):
        counts = [part.labels.count(label) for label in range(3)]
        assert len(set(counts)) == 1
    assert names(split.labelled) <= names(split.unlabelled)
    assert not names(split.test) & (names(split.labelled) | names(split.unlabelled) | names(split.validation))
    assert not names(split.validation) & (names(split.labelled) | names(split.unlabelled))
    assert set(split.unlabelled.labels) == {-1}


def test_seed_draws_labels_and_split_seed_the_test_pictures(source):
    first, again, other = (split_images(source, 6, test=0.25, seed=seed) for seed in (0, 0, 1))
    assert first.hash == again.hash and names(first.labelled) == names(again.labelled)
    assert names(first.labelled) != names(other.labelled) and names(first.test) == names(other.test)
    moved = split_images(source, 6, test=0.25, seed=0, split_seed=5)
    assert names(moved.test) != names(first.test) and moved.hash != first.hash


def test_one_label_a_class_leaves_none_for_validation(source):
    assert split_images(source, 3, validation=0.5).counts["validation"] == 0


@pytest.mark.parametrize(
    ("labelled", "part"),
    [(40, "multiple of the 3 classes. Give 39 or 42."), (0, "Give 3."), (33, "class 'cat' has 10 pictures left")],
)
def test_numbers_that_cannot_be_are_refused(source, labelled, part):
    with pytest.raises(ConfigError, match=part):
        split_images(source, labelled, test=0.2)


def test_train_test_and_unlabelled_folders_are_told_apart(folder, tmp_path):
    root = tmp_path / "set"
    for part in ("train", "test"):
        for name in CLASSES:
            (root / part / name).mkdir(parents=True)
            Image.new("RGB", (8, 8)).save(root / part / name / "a.jpg")
    (root / "unlabelled").mkdir()
    Image.new("RGB", (8, 8)).save(root / "unlabelled" / "x.jpg")
    found = open_images("folder", root)
    assert (len(found.train), len(found.test), len(found.unlabelled)) == (3, 3, 1)
    assert split_images(found, 3).counts == {"labelled": 3, "unlabelled": 4, "validation": 0, "test": 3}


def test_missing_class_unknown_set_and_missing_folder_are_named(folder, tmp_path):
    with pytest.raises(ConfigError, match=r"'cifar' is unknown\. Known: cifar10"):
        open_images("cifar", folder)
    with pytest.raises(DataError, match="no such folder"):
        open_images("folder", tmp_path / "nothing")
    for path in (folder / "dog").iterdir():
        path.unlink()
    with pytest.raises(DataError, match=r"dog: no picture"):
        open_images("folder", folder)


def test_torchvision_set_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DataError, match="--download true"):
        open_images("cifar10", tmp_path)


def test_damaged_and_grey_pictures_are_named(tmp_path):
    Image.new("L", (8, 8)).save(tmp_path / "grey.png")
    with pytest.raises(DataError, match=r"grey\.png: mode L, expected RGB"):
        read_picture(tmp_path / "grey.png")
    (tmp_path / "bad.jpg").write_bytes(b"no picture")
    with pytest.raises(DataError, match=r"bad\.jpg: not a readable picture"):
        read_picture(tmp_path / "bad.jpg")


def batches(source, epoch=1, **changes):
    split = split_images(source, 6, test=0.25)
    dataset = SemiSupervisedPictures(split, Views(16), changes.pop("keep", False))
    loader = make_picture_loader(dataset, **{"batch_size": 2, "ratio": 3, "steps": 4, "seed": 0, **changes})
    loader.sampler.set_epoch(epoch)
    return list(loader)


def test_batches_have_labelled_pictures_and_two_views_of_unlabelled_ones(source):
    found = batches(source)
    assert len(found) == 4
    for batch in found:
        assert batch["image"].shape == (2, 3, 16, 16) and batch["label"].shape == (2,)
        assert batch["weak"].shape == batch["strong"].shape == (6, 3, 16, 16) and batch["index"].shape == (6,)
        assert not torch.equal(batch["weak"], batch["strong"])


def test_batches_follow_from_seed_and_epoch_whatever_the_workers(source):
    first = batches(source)
    torch.manual_seed(99)
    for again in (batches(source), batches(source, num_workers=1), batches(source, keep=True)):
        for a, b in zip(first, again, strict=True):
            assert a["id"] == b["id"]
            assert all(torch.equal(a[key], b[key]) for key in ("image", "label", "weak", "strong", "index"))
    for changed in (batches(source, epoch=2), batches(source, seed=3)):
        assert any(not torch.equal(a["weak"], b["weak"]) for a, b in zip(first, changed, strict=True))


def test_plain_view_has_no_chance_and_scales_to_the_size(source):
    pictures = LabelledPictures(source.train, Views(8).plain())
    assert torch.equal(pictures[3]["image"], pictures[3]["image"]) and pictures[3]["image"].shape == (3, 8, 8)
    assert pictures[13]["label"] == 1 and len(pictures) == 36


def test_batches_that_cannot_be_are_refused(source):
    with pytest.raises(ConfigError, match="ratio 0"):
        batches(source, ratio=0)


def test_strong_views_differ_more_than_weak_ones_unless_two_weak_are_asked_for(source):
    picture = read_picture(source.train.pictures[0])
    plain = Views(16).plain()(picture)

    def histograms(transform):
        """How far the sorted values of a view lie from those of the picture: a flip and a shift hardly move them."""
        far = []
        for seed in range(20):
            torch.manual_seed(seed)
            far.append((transform(picture).flatten().sort().values - plain.flatten().sort().values).abs().mean())
        return float(torch.stack(far).mean())

    weak, strong, second = (
        histograms(t) for t in (Views(16).weak(), Views(16).strong(), Views(16, two_weak=True).strong())
    )
    assert strong > 3 * weak and second == weak


def test_pictures_of_imagenet_are_given_three_colours(tmp_path):
    for part in ("train", "val"):
        for name in ("a", "b"):
            (tmp_path / part / name).mkdir(parents=True)
            Image.new("L", (8, 8), 7).save(tmp_path / part / name / "x.jpg")
            Image.new("CMYK", (8, 8)).save(tmp_path / part / name / "y.jpg")
    source = open_images("imagenet", tmp_path)
    assert source.size == 224
    split = split_images(source, 2)
    check_pictures(split, tmp_path)
    assert split.unlabelled.read(0).shape == (3, 8, 8) and split.labelled.converts and split.test.converts


def test_every_kind_of_damage_is_named(tmp_path):
    Image.new("RGB", (64, 64)).save(tmp_path / "x.png")
    content = bytearray((tmp_path / "x.png").read_bytes())
    content[40] ^= 0xFF  # a chunk whose name is none: PIL calls it a SyntaxError
    (tmp_path / "x.png").write_bytes(content)
    with pytest.raises(DataError, match=r"x\.png: not a readable picture"):
        read_picture(tmp_path / "x.png")


def test_numbers_that_would_change_silently_are_refused(source):
    for keys, part in (
        ({"test": 4}, "multiple of the 3 classes. Give 0.2, or 3 or 6"),
        ({"test": 0}, "expected a share"),
        ({"validation": 11}, "at most 9 of 12"),
    ):
        with pytest.raises(ConfigError, match=part):
            split_images(source, 12, **keys)


def test_split_finds_its_pictures_from_another_folder_or_says_where_it_looked(folder, tmp_path, monkeypatch):
    work = tmp_path.parent / f"{tmp_path.name}_work"
    work.mkdir()
    shutil.move(folder, work / "pictures")
    monkeypatch.chdir(work)
    split = split_images(open_images("folder", "pictures", size=16), 6)
    split.write("run/split.json")
    monkeypatch.chdir("/")
    assert read_image_split(work / "run" / "split.json").hash == split.hash
    shutil.move(work / "pictures", work / "gone")
    with pytest.raises(DataError, match=r"split\.json: pictures is not there\. Tried: .*_work/pictures"):
        read_image_split(work / "run" / "split.json")


def test_pictures_that_are_resized_to_more_are_cut():
    columns = torch.arange(32, dtype=torch.uint8).expand(3, 32, 32).contiguous()
    views = Views(28, resize_to=32)
    assert views.sized()(columns).shape == (3, 32, 32) and views.weak()(columns).shape == (3, 28, 28)
    whole, middle = Views(32).plain()(columns), views.plain()(columns)
    assert torch.equal(middle, whole[:, 2:-2, 2:-2])
    firsts = set()
    for seed in range(30):
        torch.manual_seed(seed)
        firsts.add(round(float(views.weak()(columns)[0, 0, 10]), 4))
    assert len(firsts) > 5, "the weak view is cut anywhere"


def test_pictures_of_imagenet_are_resized_to_256_and_cut_to_224(tmp_path):
    for name in ("a", "b"):
        (tmp_path / "train" / name).mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(tmp_path / "train" / name / "x.png")
    data = PictureData(dataset_name="imagenet", dataset_dir=str(tmp_path))
    assert (data.size, data.resize_to) == (224, 256)
    data = PictureData(dataset_name="folder", dataset_dir=str(tmp_path))
    assert (data.size, data.resize_to) == (32, None)
