"""Names of scans say what they say, and no more."""

from pathlib import Path

import pytest

from medssl.data.scan_names import bids_subject, channel_of, label_stem, matching_stem, patient_of_visit, stem_of


@pytest.mark.parametrize(
    ("case_id", "patient"),
    [
        ("patient043-f01", "patient043"),
        ("case_001_t0", "case_001"),
        ("sub-01_ses-02", "sub-01"),
        ("P12.visit2", "P12"),
        ("12_baseline", "12"),
        ("0007-post", "0007"),
        ("patient001_ED", "patient001"),
        ("patient001_frame01", "patient001"),
        ("p3_timepoint_2", "p3"),
    ],
)
def test_visit_names_its_patient(case_id, patient):
    assert patient_of_visit(case_id) == patient


@pytest.mark.parametrize(
    "case_id",
    ["case_00001", "hippocampus_017", "kits_00012", "kits19_00012", "phantom_003", "scan_t1", "brain_v2", "BRATS_001",
     "liver_0", "0RZDK210BSMWAA6467LU", "site1_001", "patient12_01"],
)  # fmt: skip
def test_plain_numbers_name_no_patient(case_id):
    assert patient_of_visit(case_id) is None


def test_bids_names_channels_and_labels_are_taken_apart():
    assert bids_subject("sub-01_ses-02_T1w") == "sub-01" and bids_subject("subject-01") is None
    assert channel_of("brain_01_0002") == ("brain_01", 2) and channel_of("case_00001") is None
    assert stem_of(Path("a/scan_0000.nii.gz")) == "scan_0000" and matching_stem(Path("scan_0000.nii")) == "scan"
    assert label_stem(Path("x_0001_seg.nii.gz")) == "x_0001"
