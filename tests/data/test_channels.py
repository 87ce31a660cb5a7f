"""Channels in nnU-Net's names are refused with the way out; numbered scans are not taken for channels."""

import pytest

from medssl.core.errors import DataError
from medssl.data.channels import refuse_channels
from medssl.data.layouts import find_decathlon, find_folder, scans_in

FIND = {"folder": find_folder, "decathlon": find_decathlon, "predict": scans_in}


def touch(folder, *names):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / f"{name}.nii.gz").write_bytes(b"x")


@pytest.mark.parametrize("find", FIND.values(), ids=FIND)
def test_two_channels_of_one_scan_are_refused_wherever_scans_are_looked_for(find, tmp_path):
    touch(tmp_path / "imagesTr", "brain_01_0000", "brain_01_0001", "brain_02_0000", "brain_02_0001")
    touch(tmp_path / "labelsTr", "brain_01", "brain_02")
    with pytest.raises(DataError) as caught:
        find(tmp_path)
    text = str(caught.value)
    assert "brain_01_0000 and brain_01_0001 are channels of one scan" in text and "2 scan(s) have several" in text
    assert "reads one channel so far" in text and "end in _0001" in text


@pytest.mark.parametrize(
    ("ids", "labels"),
    [
        (["brain_0000", "brain_0001"], ["brain"]),
        (["brain_0001", "brain_0003"], ["brain"]),
        (["p7_0000", "p7_0001", "p7_0002"], []),
    ],
)
def test_channels_are_known_by_the_label_or_by_the_number_before_them(ids, labels, tmp_path):
    with pytest.raises(DataError, match="channels of one scan"):
        refuse_channels(tmp_path, ids, labels)


@pytest.mark.parametrize(
    ("ids", "labels"),
    [
        (["case_0000", "case_0001", "case_0002"], []),
        (["case_0000", "case_0001"], ["case_0000", "case_0001"]),
        (["case_0000", "case_0001"], ["case_0000"]),
        (["site1_0000", "site1_0001"], ["site1_0000", "site1_0001"]),
        (["kits19_0004", "kits19_0012"], []),
        (["a1_0000", "a2_0000"], ["a1", "a2"]),
        (["hippocampus_017", "hippocampus_018"], []),
    ],
)
def test_numbered_scans_are_no_channels(ids, labels, tmp_path):
    refuse_channels(tmp_path, ids, labels)


@pytest.mark.parametrize(
    ("folders", "find"), [(("images", "labels"), find_folder), (("imagesTr", "labelsTr"), find_decathlon)]
)
def test_one_channel_keeps_the_label_of_its_scan(folders, find, tmp_path):
    touch(tmp_path / folders[0], "p1_0000", "p2_0000")
    touch(tmp_path / folders[1], "p1", "p2")
    cases = find(tmp_path)
    assert [case["id"] for case in cases] == ["p1_0000", "p2_0000"]
    assert [case["label"] for case in cases] == [str(tmp_path / folders[1] / f"p{n}.nii.gz") for n in (1, 2)]


def test_the_channel_that_is_kept_need_not_be_the_first(tmp_path):
    touch(tmp_path / "images", "p1_0002", "p2_0002")
    touch(tmp_path / "labels", "p2")
    first, second = find_folder(tmp_path)
    assert "label" not in first and second["label"].endswith("p2.nii.gz")
