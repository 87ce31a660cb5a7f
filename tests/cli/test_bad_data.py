"""The table of bad data: what `medssl check-data` says of each, and with which exit code."""

import json
import shutil

import nibabel
import numpy as np
import pytest
from cli_scans import write_volume
from PIL import Image


def image(folder, name="b"):
    return folder / "images" / f"case_{name}.nii.gz"


def label(folder, name="b"):
    return folder / "labels" / f"case_{name}.nii.gz"


def voxels(path):
    return np.asanyarray(nibabel.load(path).dataobj)


def truncate(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def change(path, edit, dtype=np.float32, **header):
    """Write a volume again after `edit` of its voxels."""
    write_volume(path, edit(voxels(path).astype(dtype)).astype(dtype), **header)


def with_nan(values):
    values[3, 3, 3] = np.nan
    return values


def fractional(values):
    values[values == 1] = 1.2
    return values


def flip_label(folder):
    path = label(folder)
    affine = np.diag([-1.0, 1.0, 2.0, 1.0])
    affine[0, 3] = 15.0
    nibabel.save(nibabel.Nifti1Image(voxels(path), affine), path)


def odd_ids(folder):
    change(label(folder), lambda values: values * 100, np.uint8)


def as_channels(folder):
    for path in sorted((folder / "images").iterdir()):
        for channel in ("0000", "0001"):
            shutil.copy(path, path.with_name(path.name.replace(".nii.gz", f"_{channel}.nii.gz")))
        path.unlink()


def name_ignore_label(folder):
    (folder / "dataset.json").write_text(json.dumps({"labels": {"background": 0, "organ": 1, "ignore": 2}}))


def two_frames_of_patients(folder):
    for part in ("images", "labels"):
        for number, path in enumerate(sorted((folder / part).iterdir())):
            path.rename(path.with_name(f"patient{number // 2:03d}-f{number % 2 + 1:02d}.nii.gz"))


def dangling_link(folder):
    image(folder).unlink()
    image(folder).symlink_to(folder / "gone.nii.gz")


def only_pictures(folder):
    shutil.rmtree(folder)
    (folder / "images").mkdir(parents=True)
    for number in range(3):
        Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(folder / "images" / f"{number}.png")


def two_of_one_name(folder):
    write_volume(folder / "images" / "case_b.nii", voxels(image(folder)))


def write_patients(folder, text):
    (folder / "patients.csv").write_text(text)


BAD = {
    "truncated scan": (lambda f: truncate(image(f)), ["case_b", "ends too early", "Copy"]),
    "truncated label": (lambda f: truncate(label(f)), ["case_b", "ends too early", "Copy"]),
    "empty file": (lambda f: image(f).write_bytes(b""), ["case_b"]),
    "label of another shape": (lambda f: change(label(f), lambda v: v[:12], np.uint8), ["case_b", "Resample"]),
    "flipped label": (flip_label, ["case_b", "Resample"]),
    "shifted label": (lambda f: change(label(f), lambda v: v, np.uint8, offset=7.0), ["case_b", "Resample"]),
    "fractional label": (lambda f: change(label(f), fractional), ["case_b", "1.2"]),
    "NaN": (lambda f: change(image(f), with_nan), ["case_b", "NaN"]),
    "four dimensions": (lambda f: change(image(f), lambda v: np.stack([v, v], -1)), ["case_b", "4"]),
    "constant scan": (lambda f: change(image(f), lambda v: v * 0), ["case_b"]),
    "spacing of 500 mm": (lambda f: change(image(f), lambda v: v, spacing=(500.0, 1.0, 2.0)), ["case_b", "500"]),
    "channels of nnU-Net": (as_channels, ["channel", "_0001"]),
    "ignore label": (name_ignore_label, ["ignore", "dataset.json"]),
    "ids of one label only": (odd_ids, ["100", "200", "case_b"]),
    "patients.csv with ;": (lambda f: write_patients(f, "case;patient\ncase_a;1\n"), ["patients.csv"]),
    "dangling link": (dangling_link, ["case_b", "gone.nii.gz"]),
    "label without a scan": (lambda f: image(f).unlink(), ["case_b"]),
    "two scans of one name": (two_of_one_name, ["case_b"]),
    "empty folder": (lambda f: shutil.rmtree(f) or f.mkdir(), ["no scans"]),
    "pictures": (only_pictures, ["picture"]),
}
FINE = {
    "float label of whole numbers": lambda f: change(label(f), lambda v: v, np.float32),
    "X x Y x Z x 1": lambda f: change(image(f), lambda v: v[..., None]),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_data_is_named_with_the_way_out_and_ends_with_1(name, folder, ended):
    spoil, words = BAD[name]
    spoil(folder)
    end = ended("check-data", folder)
    assert end.code == 1 and "Traceback" not in end.text
    assert [word for word in words if word not in end.text] == [], end.text


@pytest.mark.parametrize("name", FINE)
def test_what_can_be_read_is_accepted(name, folder, ended):
    FINE[name](folder)
    end = ended("check-data", folder)
    assert end.code == 0 and "5 scans, 5 with a label, 0 errors" in end.text


def test_patients_csv_that_names_some_scans_is_a_warning(folder, ended):
    write_patients(folder, "case,patient\ncase_a,1\ncase_b,2\n")
    end = ended("check-data", folder)
    assert end.code == 0 and "patients.csv" in end.text and "case_c" in end.text and "0 errors, 1 warning" in end.text


def test_scans_of_one_patient_by_their_names_are_a_warning(folder, ended):
    two_frames_of_patients(folder)
    end = ended("check-data", folder)
    assert end.code == 0 and "patient000" in end.text and "patients.csv" in end.text and "1 warning" in end.text
