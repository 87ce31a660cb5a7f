"""Split lists of the literature: every published form is read, what a line gets wrong is named."""

import shutil
from pathlib import Path

import pytest

from medssl.core.errors import DataError
from natural_image_ext.data import open_scenes, split_scenes


def touch(root, *names):
    """Empty files: lists are read without a look into images."""
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


def write_lists(folder, labelled, unlabelled, names=("labeled.txt", "unlabeled.txt")):
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in zip(names, (labelled, unlabelled), strict=True):
        (folder / name).write_text("".join(f"{line}\n" for line in lines))


@pytest.fixture
def voc(tmp_path):
    """VOC with images a and b to train with, of which b has a mask among SBD's alone, c without any, v to test with."""
    root = tmp_path / "VOC2012"
    touch(root, *(f"JPEGImages/{name}.jpg" for name in "abcv"))
    touch(root, *(f"SegmentationClass/{name}.png" for name in "av"), "SegmentationClassAug/b.png")
    write_lists(root / "ImageSets" / "Segmentation", "a", "v", ("train.txt", "val.txt"))
    return open_scenes("voc", root)


@pytest.fixture
def cityscapes(tmp_path):
    root = tmp_path / "cityscapes"
    for part, city, numbers in (("train", "jena", (1, 2)), ("val", "ulm", (3,))):
        for number in numbers:
            touch(root, f"leftImg8bit/{part}/{city}/{city}_{number}_19_leftImg8bit.png")
            touch(root, f"gtFine/{part}/{city}/{city}_{number}_19_gtFine_labelTrainIds.png")
    return open_scenes("cityscapes", root)


def test_lists_of_the_literature_are_followed(scene_dir, tmp_path):
    root = tmp_path / "set"
    shutil.copytree(scene_dir, root)
    source = open_scenes("folder", root)
    lists = tmp_path / "lists"
    labelled = ["images/a_1.png masks/a_1.png", "images/b_0.png masks/b_0.png"]
    write_lists(lists, labelled, ["images/a_2.png masks/a_2.png", "", "images/a_3.png"])
    split = split_scenes(source, 1, lists_dir=lists)
    assert split.labelled.ids == ["images/a_1", "images/b_0"] and split.unlabelled.ids == ["images/a_2", "images/a_3"]
    (lists / "unlabeled.txt").write_text("images/a_7.png\n")
    with pytest.raises(DataError, match="images/a_7: is both unlabelled and test"):
        split_scenes(source, 1, lists_dir=lists)
    (lists / "unlabeled.txt").write_text("images/a_2.png\n")
    (lists / "labeled.txt").write_text("images/a_1.png\n")
    with pytest.raises(DataError, match="have no mask"):
        split_scenes(source, 1, lists_dir=lists)


@pytest.mark.parametrize(
    "form",
    [
        "JPEGImages/{0}.jpg SegmentationClass/{0}.png",
        "JPEGImages/{0}.jpg SegmentationClassAug/{0}.png",
        "/JPEGImages/{0}.jpg /SegmentationClassAug/{0}.png",
        "{0}",
    ],
    ids=["UniMatch", "masks_of_SBD", "PS-MT", "U2PL"],
)
def test_lists_of_voc_are_read_in_every_published_form(voc, tmp_path, form):
    write_lists(tmp_path / "lists", [form.format(name) for name in "ba"], [form.format("c")])
    split = split_scenes(voc, 1, lists_dir=tmp_path / "lists")
    assert split.labelled.ids == ["JPEGImages/b", "JPEGImages/a"] and split.unlabelled.ids == ["JPEGImages/c"]
    assert split.labelled.masks == [
        voc.root / "SegmentationClassAug" / "b.png",
        voc.root / "SegmentationClass" / "a.png",
    ]
    assert split.unlabelled.masks == [None]


@pytest.mark.parametrize(
    "form",
    [
        "leftImg8bit/train/jena/{0}_leftImg8bit.png gtFine/train/jena/{0}_gtFine_labelTrainIds.png",
        "leftImg8bit/train/jena/{0}_leftImg8bit.png",
        "/images/city_gt_fine/train/{0}_leftImg8bit.png /annotation/city_gt_fine/train/{0}_gtFine.png",
    ],
    ids=["UniMatch", "U2PL", "PS-MT"],
)
def test_lists_of_cityscapes_are_read_in_every_published_form(cityscapes, tmp_path, form):
    write_lists(tmp_path / "lists", [form.format("jena_2_19")], [form.format("jena_1_19")])
    split = split_scenes(cityscapes, 1, lists_dir=tmp_path / "lists")
    assert split.labelled.ids == ["leftImg8bit/train/jena/jena_2_19_leftImg8bit"]
    assert split.labelled.masks == [cityscapes.root / "gtFine/train/jena/jena_2_19_gtFine_labelTrainIds.png"]
    assert split.unlabelled.ids == ["leftImg8bit/train/jena/jena_1_19_leftImg8bit"]


def test_mask_is_taken_from_the_folder_of_voc_that_the_list_names(voc, tmp_path):
    touch(voc.root, "SegmentationClassAug/a.png")
    for folder in ("SegmentationClass", "SegmentationClassAug"):
        write_lists(tmp_path / "lists", [f"JPEGImages/a.jpg {folder}/a.png"], ["b"])
        assert split_scenes(voc, 1, lists_dir=tmp_path / "lists").labelled.masks[0].parent.name == folder


def test_lists_of_ps_mt_are_chosen_by_their_number(voc, tmp_path):
    for number, labelled in (("1", "a"), ("2", "ab")):
        names = tuple(f"{number}_train_{kind}.txt" for kind in ("supervised", "unsupervised"))
        write_lists(tmp_path / "voc_splits", labelled, "c", names)
    for number in (1, 2):
        assert len(split_scenes(voc, 1, lists_dir=tmp_path / "voc_splits" / str(number)).labelled) == number
    with pytest.raises(DataError, match=r"voc_splits/labeled\.txt: no such file.*183_train_supervised\.txt"):
        split_scenes(voc, 1, lists_dir=tmp_path / "voc_splits")


@pytest.mark.parametrize(
    ("line", "finding"),
    [
        (
            "JPEGImages/z.jpg SegmentationClass/z.png",
            r"no image JPEGImages/z\.jpg below .*VOC2012\. Expected",
        ),
        ("2007_000001", r"no image JPEGImages/2007_000001\.jpg below"),
        ("x_1_leftImg8bit.png", r"no image x_1_leftImg8bit\.png or leftImg8bit/train/x/x_1_leftImg8bit\.png below"),
        ("JPEGImages/../../other/d.jpg", r"'JPEGImages/\.\./\.\./other/d\.jpg' leaves the data set"),
        ("JPEGImages/c.jpg ../other/d.png", "leaves the data set"),
        ("{absolute}", "no image"),
    ],
)
def test_line_that_names_no_image_of_the_data_set_is_refused(voc, tmp_path, line, finding):
    touch(tmp_path, "other/d.jpg", "other/d.png")
    write_lists(tmp_path / "lists", "a", ["c", line.format(absolute=tmp_path / "other" / "d.jpg")])
    with pytest.raises(DataError, match=rf"unlabeled\.txt, line 2: .*{finding}"):
        split_scenes(voc, 1, lists_dir=tmp_path / "lists")


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("name", "folder", "classes", "labelled"),
    [
        ("voc", "pascal/92", 21, 92),
        ("voc_blender", "pascal/u2pl_1_16", 21, 662),
        ("cityscapes", "cityscapes/1_16", 19, 186),
    ],
)
def test_lists_for_pascal_and_cityscapes_fit_their_layouts(shared_data, tmp_path, name, folder, classes, labelled):
    lists = shared_data / "splits" / folder
    if not lists.is_dir():
        pytest.skip(f"{lists} is not there")
    names = [file for part in ("labeled", "unlabeled") for file in (lists / f"{part}.txt").read_text().split()]
    touch(tmp_path, *(file.replace("Class/", "ClassAug/") if name == "voc_blender" else file for file in names))
    if name == "cityscapes":
        touch(tmp_path, "leftImg8bit/val/ulm/ulm_1_leftImg8bit.png")
    else:
        touch(tmp_path, "JPEGImages/train_1.jpg", "JPEGImages/val_1.jpg")
        write_lists(tmp_path / "ImageSets" / "Segmentation", ["train_1"], ["val_1"], ("train.txt", "val.txt"))
    source = open_scenes(name, tmp_path)
    split = split_scenes(source, 1, lists_dir=lists)
    assert source.num_classes == classes and split.counts["labelled"] == labelled and split.counts["test"] == 1
    assert labelled + split.counts["unlabelled"] == len(names) // 2


def test_classic_voc_leaves_masks_of_sbd_out_but_lists_find_them(voc, tmp_path):
    assert [Path(name).name for name in voc.train.ids] == ["a", "b"] and voc.train.masks[1] is None
    write_lists(tmp_path / "lists", ["b"], ["c"])
    split = split_scenes(voc, 1, lists_dir=tmp_path / "lists")
    assert split.labelled.masks[0].parent.name == "SegmentationClassAug" and split.unlabelled.masks == [None]
