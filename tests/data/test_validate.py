"""Each bad input of docs/reliability.md, part B, becomes a finding that names the file and what is wrong with it."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from medssl.core.errors import DataError
from medssl.data import validate
from medssl.data.validate import Finding, check_case, check_cases, findings_text, require_valid

LABEL = np.zeros((6, 5, 4), np.uint8)
LABEL[1:3, 1:3, 1:3] = 1


def affine(spacing=(1.0, 1.0, 1.0), origin=(0.0, 0.0, 0.0), shear=0.0) -> np.ndarray:
    matrix = np.diag([*spacing, 1.0])
    matrix[:3, 3] = origin
    matrix[0, 1] = shear
    return matrix


def voxels(value: float) -> np.ndarray:
    array = np.arange(120, dtype=np.float32).reshape(6, 5, 4)
    array[0, 0, :2] = value
    return array


def singular() -> np.ndarray:
    matrix = np.eye(4)
    matrix[:3, 1] = matrix[:3, 0]
    return matrix


@pytest.fixture
def case(write_scan):
    """case(image=..., label=...) -> a labelled case; each a dict of write_scan's array and affine, or bytes."""

    def make(image: dict | bytes | None = None, label: dict | bytes | None = None, **more) -> dict:
        made = {"id": "case_07", "patient": "p7", "role": "labelled", **more}
        for key, given in (("image", image), ("label", label)):
            path = write_scan(f"{made['id']}_{key}.nii.gz", LABEL if key == "label" else None)
            if isinstance(given, bytes):
                path.write_bytes(given)
            elif given is not None:
                path = write_scan(path.name, **{"array": LABEL if key == "label" else None, **given})
            made[key] = str(path)
        return made

    return make


def test_good_case_has_no_findings(case):
    assert check_case(case(), label_ids=[1]) == []


# name: changes of the case, the file at fault, the finding's code, words of the message
BAD_CASES = {
    "empty": ({"image": b""}, "image", "empty", "0 bytes"),
    "truncated gzip": ({"image": gzip.compress(bytes(999))[:15]}, "image", "truncated-gzip", "truncated"),
    "not gzip": ({"image": b"nothing like gzip"}, "image", "not-gzip", "not gzip"),
    "wrong magic": ({"image": gzip.compress(b"x" * 999)}, "image", "wrong-magic", "NIfTI header"),
    "2-D": ({"image": {"array": LABEL[..., 0]}}, "image", "2-d", "shape (6, 5)"),
    "4-D": ({"image": {"array": np.stack([LABEL] * 3, -1)}}, "image", "4-d", "shape (6, 5, 4, 3)"),
    "NaN": ({"image": {"array": voxels(np.nan)}}, "image", "nan-voxels", "2 NaN voxels of 120"),
    "Inf": ({"image": {"array": voxels(-np.inf)}}, "image", "inf-voxels", "2 Inf voxels of 120"),
    "constant": ({"image": {"array": np.full((6, 5, 4), 7.0)}}, "image", "constant", "every voxel is 7"),
    "zero affine": ({"image": {"affine": affine((0, 0, 0))}}, "image", "zero-affine", "affine of zeros"),
    "NaN affine": ({"image": {"affine": affine(origin=(np.nan, 0, 0))}}, "image", "nan-affine", "NaN"),
    "singular affine": ({"image": {"affine": singular()}}, "image", "singular-affine", "three independent axes"),
    "zero spacing": ({"image": {"affine": affine((1, 0, 1))}}, "image", "spacing", "more than 0 mm"),
    "tiny spacing": ({"image": {"affine": affine((0.04, 1, 1))}}, "image", "spacing", "expected 0.05 to 20 mm"),
    "huge spacing": ({"image": {"affine": affine((1, 1, 21))}}, "image", "spacing", "(1, 1, 21) mm, expected"),
    "shear": ({"image": {"affine": affine(shear=0.1)}}, "image", "shear", "sheared by 5.7"),
    "other shape": ({"label": {"array": LABEL[:, :, :3]}}, "label", "shape-mismatch", "(6, 5, 3), image has (6, 5, 4)"),
    "other spacing": ({"label": {"affine": affine((1, 1, 3))}}, "label", "spacing-mismatch", "(1, 1, 3) mm, image has"),
    "other origin": ({"label": {"affine": affine(origin=(0, 5, 0))}}, "label", "origin-mismatch", "(0, 5, 0) mm"),
    "other direction": ({"label": {"affine": affine((-1, 1, 1))}}, "label", "direction-mismatch", "axis directions"),
    "unknown label id": ({"label": {"array": LABEL * 9}}, "label", "unknown-label", "label ids 9, expected 0 and 1"),
    "fractional label": (
        {"label": {"array": LABEL * 0.5}},
        "label",
        "fractional-label",
        "8 voxels hold no integer (0.5",
    ),
    "NaN label": ({"label": {"array": voxels(np.nan)}}, "label", "nan-voxels", "2 NaN voxels"),
    "background only": ({"label": {"array": LABEL * 0}}, "label", "empty-label", "only background"),
}


@pytest.mark.parametrize("changes, key, code, words", BAD_CASES.values(), ids=BAD_CASES)
def test_bad_case_gives_the_one_finding(changes, key, code, words, case):
    bad = case(**changes)
    (finding,) = check_case(bad, label_ids=[1])
    assert (finding.case, finding.file, finding.severity, finding.code) == ("case_07", bad[key], "error", code)
    assert words in finding.message
    with pytest.raises(DataError) as caught:
        require_valid([finding])
    assert str(caught.value) == f"{bad[key]}: {finding.message}"


@pytest.mark.parametrize("key", ["image", "label"])
def test_missing_file_is_found(key, case):
    bad = case()
    Path(bad[key]).unlink()
    (finding,) = check_case(bad)
    assert (finding.file, finding.code) == (bad[key], "missing")


def test_unnamed_files_are_found_where_they_are_needed(case):
    good = case()
    del good["label"]
    assert [finding.code for finding in check_case(good)] == ["missing"]
    assert check_case({**good, "role": "unlabelled"}) == []
    assert [finding.code for finding in check_case({"id": "1"})] == ["missing"]


def test_bad_dicom_series_is_a_finding(write_series):
    def shift(dataset, index):
        dataset.ImagePositionPatient = [0, 0, index**2]

    folder = write_series(edit=shift)
    (finding,) = check_case({"id": "1", "image": str(folder)})
    assert (finding.file, finding.code) == (str(folder), "uneven-spacing")
    assert finding.message.startswith("uneven slices")


@pytest.mark.parametrize("role", ["unlabelled", "validation", "test"])
def test_background_only_label_is_a_warning_outside_the_labelled_cases(role, case):
    (finding,) = check_case(case(label={"array": LABEL * 0}, role=role))
    assert (finding.code, finding.severity) == ("empty-label", "warning")
    require_valid([finding])


def test_one_slice_is_a_warning(case):
    found = check_case(case(image={"array": LABEL[..., 1:2]}, label={"array": LABEL[..., 1:2]}))
    assert [(finding.code, finding.severity) for finding in found] == [("single-slice", "warning")]


def test_labels_that_are_whole_numbers_may_be_stored_as_floats(case):
    assert check_case(case(label={"array": LABEL.astype(np.float32)}), label_ids=[1]) == []


def test_small_differences_of_header_rounding_are_no_mismatch(case):
    near = affine((1 + 5e-4, 1, 1), origin=(0.05, 0, 0), shear=5e-4)
    assert check_case(case(label={"affine": near})) == []


def test_library_errors_become_findings(case, monkeypatch):
    def fail(address):
        raise RuntimeError("internal")

    monkeypatch.setattr(validate, "read_volume", fail)
    assert {finding.code for finding in check_case(case())} == {"unreadable"}


def codes(findings: list[Finding]) -> list[tuple[str, str]]:
    return [(finding.case, finding.code) for finding in findings]


def test_duplicate_ids_images_and_leaking_patients_are_found(case):
    cases = [case(id="a", patient="SECRET"), case(id="b", role="test"), case(id="c", patient="SECRET", role="test")]
    assert codes(check_cases(cases)) == [("c", "patient-leak")]
    assert codes(check_cases([*cases[:2], {**case(id="d", patient="q"), "id": "b"}])) == [("b", "duplicate-id")]
    detour = str(Path(cases[0]["image"]).parent / ".." / Path(cases[0]["image"]).parent.name / "a_image.nii.gz")
    found = check_cases([cases[0], {**case(id="e"), "image": detour}])
    assert codes(found) == [("e", "duplicate-image")]
    assert found[0].file == detour
    leak = check_cases(cases)[0]
    assert "same patient as labelled case a" in leak.message
    assert "SECRET" not in leak.message


@pytest.mark.parametrize("role", ["labelled", "unlabelled", "validation"])
def test_patient_on_both_sides_is_found_for_every_training_role(role, case):
    cases = [case(id="a", role=role), case(id="b", role="test")]
    assert codes(check_cases(cases)) == [("b", "patient-leak")]
    assert check_cases([cases[0], case(id="c", role="validation")]) == []


def test_findings_keep_the_order_of_the_cases(case):
    cases = [case(id=str(i), patient=str(i), image=b"") for i in range(9)]
    assert [finding.case for finding in check_cases(cases, workers=3)] == [str(i) for i in range(9)]


def test_unchanged_files_are_not_read_again(case, tmp_path, monkeypatch):
    cases = [case(id="a", patient="a", image={"array": voxels(np.nan)}), case(id="b", patient="b")]
    cache = tmp_path / "run" / "check.json"
    first = check_cases(cases, [1], cache)
    read: list[str] = []
    reader = validate.read_volume
    monkeypatch.setattr(validate, "read_volume", lambda address: read.append(address) or reader(address))
    assert check_cases(cases, [1], cache) == first
    assert read == []
    Path(cases[1]["image"]).write_bytes(b"")
    assert codes(check_cases(cases, [1], cache)) == [("a", "nan-voxels"), ("b", "empty")]
    assert set(read) == {cases[1]["image"], cases[1]["label"]}
    read.clear()
    check_cases(cases, [1, 2], cache)
    assert len(read) == 4


@pytest.mark.parametrize("content", ["", "{", "[]", json.dumps({"x": [{"no": "finding"}]})])
def test_damaged_cache_is_started_anew(content, case, tmp_path):
    cache = tmp_path / "check.json"
    cache.write_text(content)
    assert codes(check_cases([case(image=b"")], cache_file=cache)) == [("case_07", "empty")]
    assert len(json.loads(cache.read_text())) == 1


def findings(count: int) -> list[Finding]:
    return [Finding(f"case_{i}", f"{i}.nii.gz", "error", "constant", f"every voxel is {i}") for i in range(count)]


def test_require_valid_lists_ten_errors_and_counts_the_rest():
    require_valid([])
    with pytest.raises(DataError) as caught:
        require_valid(findings(13))
    lines = str(caught.value).splitlines()
    assert lines[0] == "0.nii.gz: every voxel is 0"
    assert lines[9] == "9.nii.gz: every voxel is 9"
    assert lines[10:] == ["... and 3 more errors. 'medssl check-data' lists all."]


def test_list_shows_errors_first():
    warning = Finding("case_w", "w.nii.gz", "warning", "empty-label", "run pip install 'medssl[dicom]'")
    console = Console(width=160)
    with console.capture() as capture:
        console.print(findings_text([warning, *findings(1)]))
    text = capture.get()
    assert "medssl[dicom]" in text
    assert text.index("case_0") < text.index("case_w")
