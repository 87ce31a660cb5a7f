"""Ids that one label has and no other are told; an ignore label is no structure."""

import json

import numpy as np
import pytest

from medssl.core.errors import DataError
from medssl.data.label_ids import odd_id_findings, read_label_ids, structure_names
from medssl.data.volumes import write_nifti


def findings(tmp_path, *ids_of_labels):
    names = [f"c{number}" for number in range(len(ids_of_labels))]
    cases = [{"id": name, "label": f"{name}.nii.gz"} for name in names]
    ids = {case["label"]: frozenset(own) for case, own in zip(cases, ids_of_labels, strict=True)}
    return odd_id_findings(tmp_path, cases, ids)


def test_label_with_other_ids_than_all_others_is_an_error_with_the_way_out(tmp_path):
    (finding,) = findings(tmp_path, {1, 2}, {1, 2}, {100, 200}, {2})
    assert (finding.case, finding.severity, finding.code) == ("c2", "error", "odd-label-ids")
    assert "ids 100, 200" in finding.message and "3 labels have 1, 2" in finding.message
    assert "dataset.json" in finding.message


def test_a_few_labels_with_other_ids_among_many_are_warnings(tmp_path):
    odd = findings(tmp_path, *[{1, 2}] * 8, {100}, {100})
    assert [(finding.case, finding.severity) for finding in odd] == [("c8", "warning"), ("c9", "warning")]


def test_id_that_one_of_many_labels_has_besides_the_common_ones_is_a_warning(tmp_path):
    (finding,) = findings(tmp_path, {1}, {1}, {1, 7}, {1}, {1})
    assert (finding.case, finding.severity, finding.code) == ("c2", "warning", "rare-label-id")
    assert "ids 7 in this label only, of 5" in finding.message


@pytest.mark.parametrize(
    "ids",
    [
        [{1, 2}, {1}, {2}, {1, 2}],
        [{1}, {2}],
        [{1}],
        [{1}, {1}, set()],
        [{1}, {1, 7}, {1}],
        [*[{1}] * 4, *[{2}] * 3],
        [],
    ],
)
def test_labels_that_may_well_be_right_are_no_finding(ids, tmp_path):
    assert findings(tmp_path, *ids) == []


def test_ids_are_read_from_the_files_that_can_be_read(tmp_path):
    write_nifti(tmp_path / "a.nii.gz", np.array([[[0, 3, 7]]]), np.eye(4), np.uint8)
    (tmp_path / "b.nii.gz").write_bytes(b"broken")
    cases = [{"id": name, "label": str(tmp_path / f"{name}.nii.gz")} for name in "ab"]
    assert read_label_ids([*cases, {"id": "unlabelled"}]) == {cases[0]["label"]: frozenset({3, 7})}


@pytest.mark.parametrize("labels", [{"background": 0, "tumour": 1, "ignore": 3}, {"0": "background", "3": "Ignore"}])
def test_ignore_label_is_refused_with_both_ways_round(labels, tmp_path):
    (tmp_path / "dataset.json").write_text(json.dumps({"labels": labels}))
    with pytest.raises(DataError) as caught:
        structure_names(tmp_path, [])
    text = str(caught.value)
    assert "dataset.json" in text and "(3)" in text and "no ignore label so far" in text
    assert "to 0 in the labels" in text and "unlabelled" in text
