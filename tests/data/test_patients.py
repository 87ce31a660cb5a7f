"""One patient's scans: a warning where nothing but their names says so, none where it is known or not so."""

from pathlib import Path

import pytest

from medssl.data.patients import patient_findings

VISITS = ("patient043-f01", "patient043-f02", "patient044-f01")


def cases_of(*ids, roles=None, patient=None):
    cases = [{"id": i, "image": f"{i}.nii.gz", "patient": patient or i} for i in ids]
    return [{**case, "role": role} for case, role in zip(cases, roles, strict=True)] if roles else cases


def test_scans_that_seem_of_one_patient_are_a_warning_with_the_table_to_write(tmp_path):
    (finding,) = patient_findings(tmp_path, cases_of(*VISITS))
    assert finding.severity == "warning" and finding.file == str(tmp_path / "patients.csv")
    assert "2 scans are of 1 patient(s): patient043 (patient043-f01, patient043-f02)" in finding.message
    assert "'case,patient'" in finding.message and "'patient043-f01,patient043'" in finding.message


@pytest.mark.parametrize(
    "ids",
    [
        ("case_00001", "case_00002"),
        ("hippocampus_017", "hippocampus_018"),
        ("kits_00012", "kits_00013"),
        ("phantom_003", "phantom_004"),
        ("patient043-f01", "patient044-f01"),
        ("study2020_v001", "study2020_v002", "study2020_v003"),
    ],
)
def test_plain_numbers_one_scan_a_patient_and_a_common_beginning_are_no_warning(ids, tmp_path):
    assert patient_findings(tmp_path, cases_of(*ids)) == []


def test_patients_that_are_known_are_no_warning(tmp_path):
    assert patient_findings(tmp_path, cases_of("sub-01_ses-1", "sub-01_ses-2", "sub-02_ses-1", patient="sub")) == []
    (tmp_path / "patients.csv").write_text("case,patient\n" + "".join(f"{i},{i}\n" for i in VISITS))
    assert patient_findings(tmp_path, cases_of(*VISITS)) == []


@pytest.mark.parametrize(
    ("roles", "warns"),
    [
        (("labelled", "test", "test"), True),
        (("labelled", "validation", "test"), True),
        (("labelled", "unlabelled", "test"), False),
    ],
)
def test_split_is_warned_of_only_where_a_patient_is_on_both_sides(roles, warns, tmp_path):
    findings = patient_findings(tmp_path, cases_of(*VISITS, roles=roles))
    assert len(findings) == warns
    if warns:
        assert f"patient043-f01 labelled, patient043-f02 {roles[1]}" in findings[0].message


def test_table_that_leaves_scans_out_is_a_warning(tmp_path):
    (tmp_path / "patients.csv").write_text("case,patient\na,p1\nb,p1\n")
    (finding,) = patient_findings(Path(tmp_path), cases_of("a", "b", "c", "d"))
    assert finding.severity == "warning" and "names 2 of 4 scans, expected all" in finding.message
    assert "c, d" in finding.message and "Add a line" in finding.message


def test_many_patients_are_shortened(tmp_path):
    ids = [f"p{number}_t{visit}" for number in range(9) for visit in range(7)]
    (finding,) = patient_findings(tmp_path, cases_of(*ids))
    assert "63 scans are of 9 patient(s)" in finding.message and "p2_t4 and 2 more) and 6 more." in finding.message
