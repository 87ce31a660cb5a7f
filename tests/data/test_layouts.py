"""Cases are found as each layout names them, and whatever cannot be a data set is refused with a way out."""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest

from medssl.core.errors import DataError
from medssl.data.label_ids import structure_names
from medssl.data.layouts import (
    find_decathlon,
    find_folder,
    find_kits19,
    find_left_atrium,
    fitting_sizes,
    scans_in,
)
from medssl.data.volumes import read_volume, write_nifti

SLICES_FIRST = np.array([[0.0, 0, -0.8, 0], [0, -0.8, 0, 0], [-3.0, 0, 0, 0], [0, 0, 0, 1]])  # as KiTS19 is stored


def write(path: Path, value: int = 0, shape: tuple[int, ...] = (4, 5, 3), affine: np.ndarray | None = None) -> str:
    write_nifti(path, np.full(shape, value), np.eye(4) if affine is None else affine, np.uint8)
    return str(path)


def ids(cases: list[dict]) -> list[str]:
    return [case["id"] for case in cases]


def test_kits19_leaves_out_scans_without_a_segmentation(tmp_path):
    for name in ("case_00001", "case_00000"):
        write(tmp_path / "data" / name / "imaging.nii.gz")
        write(tmp_path / "data" / name / "segmentation.nii.gz")
    write(tmp_path / "data" / "case_00210" / "imaging.nii.gz")
    cases = find_kits19(tmp_path)
    assert ids(cases) == ["case_00000", "case_00001"]
    assert cases == find_kits19(tmp_path / "data")


def test_decathlon_is_found_inside_its_task_folder(tmp_path):
    image = write(tmp_path / "Task03_Liver" / "imagesTr" / "liver_0.nii.gz")
    label = write(tmp_path / "Task03_Liver" / "labelsTr" / "liver_0.nii.gz")
    write(tmp_path / "Task03_Liver" / "imagesTs" / "liver_9.nii.gz")
    expected = [{"id": "liver_0", "image": image, "label": label, "patient": "liver_0"}]
    assert find_decathlon(tmp_path) == find_decathlon(tmp_path / "Task03_Liver") == expected


def test_two_scans_of_one_name_are_refused(tmp_path):
    for part in ("part1", "part2"):
        (tmp_path / part / "AAA").mkdir(parents=True)
        (tmp_path / part / "AAA" / "mri_norm2.h5").touch()
    with pytest.raises(DataError, match=r"part1.*part2.*several scans are called 'AAA'"):
        find_left_atrium(tmp_path)


@pytest.mark.parametrize("folders", [("images", "labels"), ("imagesTr", "labelsTr"), (".", "labels")])
def test_folder_pairs_scans_and_labels_and_leaves_the_rest_unlabelled(folders, tmp_path):
    images, labels = tmp_path / folders[0], tmp_path / folders[1]
    for name in ("b", "a", "c"):
        write(images / f"{name}.nii.gz")
    label = write(labels / "b.nii.gz")
    cases = find_folder(tmp_path)
    assert ids(cases) == ["a", "b", "c"]
    assert [case.get("label") for case in cases] == [None, label, None]


@pytest.mark.parametrize(
    ("image", "label"),
    [
        ("scan_0000.nii.gz", "scan.nii.gz"),
        ("scan.nrrd", "scan.nii.gz"),
        ("scan.nii", "scan_seg.nii.gz"),
        ("scan.nii.gz", "scan_label.nii.gz"),
        ("scan.mha", "scan-Mask.nii"),
    ],
)
def test_folder_pairs_the_usual_names(image, label, tmp_path):
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / image).touch()
    write(tmp_path / "labels" / label)
    (case,) = find_folder(tmp_path)
    assert case["label"] == str(tmp_path / "labels" / label)


def test_label_without_a_scan_is_named(tmp_path):
    for name in ("a", "b"):
        write(tmp_path / "images" / f"{name}.nii.gz")
    for name in ("a", "x", "y"):
        write(tmp_path / "labels" / f"{name}.nii.gz")
    with pytest.raises(DataError, match=r"2 label\(s\) without a scan, first x.nii.gz"):
        find_folder(tmp_path)


def test_two_labels_of_one_scan_are_refused(tmp_path):
    write(tmp_path / "images" / "a.nii.gz")
    write(tmp_path / "labels" / "a.nii.gz")
    write(tmp_path / "labels" / "a_seg.nii.gz")
    with pytest.raises(DataError, match=r"a_seg.nii.gz.*a.nii.gz is a label of the same scan"):
        find_folder(tmp_path)


def test_folder_reads_hdf5_through_its_keys(tmp_path):
    for folder, key, value in (("images", "image", 5.0), ("labels", "label", 1)):
        (tmp_path / folder).mkdir()
        with h5py.File(tmp_path / folder / "a.h5", "w") as file:
            file[key] = np.full((2, 2, 2), value)
    (case,) = find_folder(tmp_path)
    assert read_volume(case["image"]).array.max() == 5
    assert read_volume(case["label"]).array.max() == 1


@pytest.mark.parametrize("head", ["case,patient\n", "\ufeffcase,patient\r\n"], ids=["plain", "Excel"])
def test_patients_csv_says_who_is_the_same_person(head, tmp_path):
    for name in ("a", "b", "c"):
        write(tmp_path / "images" / f"{name}.nii.gz")
    (tmp_path / "patients.csv").write_text(head + 'a,p1\n"b.nii.gz", p1\n\nnot_here,p3\n', encoding="utf-8")
    a, b, c = (case["patient"] for case in find_folder(tmp_path))
    assert a == b != c == "c"
    assert "p1" not in a, "the table may hold names: only a digest goes into split files and logs"


def test_patients_csv_that_names_no_scan_is_refused(tmp_path):
    write(tmp_path / "images" / "a.nii.gz")
    (tmp_path / "patients.csv").write_text("case,patient\nA1,p1\n")
    with pytest.raises(DataError, match=r"patients.csv: names none of the 1 scans, first a\."):
        find_folder(tmp_path)


def test_bids_names_say_who_is_the_same_person(tmp_path):
    names = ("sub-01_ses-1_T1w", "sub-01_ses-2_T1w", "sub-02_T1w")
    for name in names:
        write(tmp_path / "images" / f"{name}.nii.gz")
    assert [case["patient"] for case in find_folder(tmp_path)] == ["sub-01", "sub-01", "sub-02"]


def test_dicom_series_of_one_patient_belong_together_and_nothing_names_the_patient(tmp_path, write_series):
    def patient(name: str):
        return lambda dataset, _: setattr(dataset, "PatientID", name)

    for name, number in (("x", "SECRET-1"), ("y", "SECRET-1"), ("z", "SECRET-2"), ("anonymous", "")):
        write_series(2, patient(number), name=name)
    cases = find_folder(tmp_path)
    patients = {case["id"]: case["patient"] for case in cases}
    assert patients["x"] == patients["y"] != patients["z"]
    assert patients["anonymous"] == "anonymous"
    assert "SECRET" not in json.dumps(cases)


def test_a_folder_without_dicom_is_no_scan(tmp_path):
    write(tmp_path / "a.nii.gz")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "readme.txt").write_text("no scan")
    (tmp_path / ".cache").mkdir()
    assert ids(find_folder(tmp_path)) == ["a"]


@pytest.mark.parametrize(
    "labels",
    [
        {"0": "background", "2": "tumour", "1": "liver"},
        {"background": 0, "tumour": 2, "liver": 1},
    ],
    ids=["MSD", "nnU-Net"],
)
def test_dataset_json_names_the_structures(labels, tmp_path):
    (tmp_path / "dataset.json").write_text(json.dumps({"labels": labels}))
    names = structure_names(tmp_path, [])
    assert list(names.items()) == [(1, "liver"), (2, "tumour")]


@pytest.mark.parametrize("text", ["{", '{"name": "x"}', '{"labels": {"whole": [1, 2]}}', '{"labels": ["liver"]}'])
def test_dataset_json_that_cannot_be_understood_is_refused_with_the_form(text, tmp_path):
    (tmp_path / "dataset.json").write_text(text)
    with pytest.raises(DataError, match=r"dataset\.json.*Expected \"labels\""):
        structure_names(tmp_path, [])


def test_structures_come_from_the_label_files_where_nothing_names_them(tmp_path):
    cases = [{"label": write(tmp_path / f"{value}.nii.gz", value)} for value in (9, 0, 4)]
    (tmp_path / "broken.nii.gz").write_bytes(b"broken")
    cases.append({"label": str(tmp_path / "broken.nii.gz")})
    assert structure_names(tmp_path, [*cases, {"id": "unlabelled"}]) == {4: "label 4", 9: "label 9"}


def test_folder_without_labels_or_with_empty_ones_cannot_be_learnt_from(tmp_path):
    with pytest.raises(DataError, match="no label found"):
        structure_names(tmp_path, [{"id": "a"}])
    with pytest.raises(DataError, match="no id above 0"):
        structure_names(tmp_path, [{"label": write(tmp_path / "a.nii.gz", 0)}])


@pytest.mark.parametrize(
    ("shape", "affine", "expected"),
    [
        ((35, 50, 36), np.eye(4), (None, None, (48, 64, 32))),
        ((64, 64, 24), np.eye(4), (None, None, (64, 64, 24))),
        ((300, 310, 20), np.eye(4), ((256, 256), None, (128, 128, 20))),
        ((40, 300, 310), SLICES_FIRST, ((256, 256), None, (128, 128, 32))),
        ((20, 200, 260), np.eye(4), (None, None, (32, 128, 32))),  # sagittal slices
        ((1, 9, 1), np.eye(4), (None, None, (16, 16, 1))),
    ],
)
def test_sizes_fit_the_scans(shape, affine, expected, tmp_path):
    assert fitting_sizes([{"image": write(tmp_path / "a.nii.gz", 0, shape, affine)}]) == expected


def test_sizes_come_from_the_median_of_the_readable_scans(tmp_path):
    shapes = [(20, 20, 8), (40, 40, 10), (200, 200, 90)]
    cases = [{"image": write(tmp_path / f"{shape[0]}.nii.gz", 0, shape)} for shape in shapes]
    (tmp_path / "broken.nii.gz").write_bytes(b"broken")
    cases.append({"image": str(tmp_path / "broken.nii.gz")})
    assert fitting_sizes(cases) == (None, None, (48, 48, 10))
    with pytest.raises(DataError, match=r"broken\.nii\.gz.*check-data"):
        fitting_sizes(cases[-1:])


def test_scan_to_predict_may_be_one_file(tmp_path):
    path = write(tmp_path / "a.nii.gz")
    assert scans_in(path) == [{"id": "a", "image": path, "patient": "a"}]
    (tmp_path / "b.h5").touch()
    for address in (f"{tmp_path}/b.h5", f"{tmp_path}/b.h5::image"):
        assert scans_in(address)[0]["image"] == f"{tmp_path}/b.h5::image"


@pytest.mark.parametrize("inside", [".", "images", "imagesTr"])
def test_scans_to_predict_may_be_a_folder_whatever_its_labels(inside, tmp_path):
    for name in ("b", "a"):
        write(tmp_path / inside / f"{name}.nii.gz")
    write(tmp_path / "labels" / "of_another_scan.nii.gz")
    cases = scans_in(tmp_path)
    assert ids(cases) == ["a", "b"]
    assert all("label" not in case for case in cases)


def test_scan_to_predict_may_be_a_dicom_series_or_a_folder_of_them(tmp_path, write_series, monkeypatch):
    first = write_series(2, name="first")
    assert ids(scans_in(first)) == ["first"]
    monkeypatch.chdir(first)
    assert ids(scans_in(".")) == ["first"]
    write_series(2, name="second")
    cases = scans_in(tmp_path)
    assert ids(cases) == ["first", "second"]
    assert read_volume(cases[1]["image"]).shape == (4, 3, 2)


def test_nothing_to_predict_is_an_error(tmp_path):
    with pytest.raises(DataError, match="missing: no such file or folder"):
        scans_in(tmp_path / "missing")
    with pytest.raises(DataError, match="no scans found"):
        scans_in(tmp_path)
    (tmp_path / "notes.txt").write_text("no scan")
    with pytest.raises(DataError, match="no scans found"):
        scans_in(tmp_path)


def test_label_beside_its_scan_is_a_label_and_no_scan_of_its_own(tmp_path):
    for name in ("a", "a_seg", "b", "c_mask"):
        write_nifti(tmp_path / f"{name}.nii.gz", np.arange(8).reshape(2, 2, 2), np.eye(4), np.int16)
    cases = find_folder(tmp_path)
    assert [case["id"] for case in cases] == ["a", "b", "c_mask"]  # without a scan `c`, its name is just a name
    assert cases[0]["label"].endswith("a_seg.nii.gz") and "label" not in cases[1]


@pytest.mark.parametrize("name", ["photo.png", "photo.JPG"])
def test_pictures_are_no_scans_and_the_bundles_for_them_are_named(name, tmp_path):
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / name).touch()
    for find, path in ((scans_in, tmp_path), (find_folder, tmp_path), (scans_in, tmp_path / "cat" / name)):
        with pytest.raises(DataError, match=rf"{name}.*Expected volumes.*np_match"):
            find(path)


def test_link_that_leads_nowhere_is_a_case_whose_reading_names_the_target(tmp_path):
    write(tmp_path / "images" / "a.nii.gz")
    for folder in ("images", "labels"):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "b.nii.gz").symlink_to("/gone/b.nii.gz")
    _, broken = find_folder(tmp_path)
    for key in ("image", "label"):
        with pytest.raises(DataError, match=r"b\.nii\.gz: a link to /gone/b\.nii\.gz, which is not there"):
            read_volume(broken[key])
    assert ids(scans_in(tmp_path)) == ["a", "b"]
