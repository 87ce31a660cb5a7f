"""What is paired with what: by seed and by case id, never by the order of rows."""

from dataclasses import replace

import numpy as np
import pytest

from medssl.metrics.catalogue import DICE
from medssl.report.comparison.pairing import pair_runs

BASE = {"a": 0.5, "b": 0.6, "c": 0.7}


def with_split(run, entries, split_hash):
    """The run with other cases in its split."""
    return replace(run, split={"cases": entries}, facts=run.facts | {"split_hash": split_hash})


def entries(**roles):
    return [{"id": case, "role": role, "patient": case} for case, role in roles.items()]


def test_cases_are_paired_by_id_not_by_order(run_of):
    baseline = run_of("self-training", BASE)
    method = run_of("GBDL", {"c": 0.73, "a": 0.51, "b": 0.62})
    pairs = pair_runs([method], [baseline], DICE)

    assert pairs.cases == ["a", "b", "c"]
    assert pairs.values == pytest.approx(np.array([[0.01, 0.02, 0.03]]))
    assert pairs.notes == []


def test_seeds_are_paired_by_number_not_by_order(run_of):
    baseline = [run_of("self-training", dict.fromkeys("ab", 0.5), seed=seed) for seed in (0, 1, 2)]
    method = [run_of("GBDL", dict.fromkeys("ab", 0.5 + 0.1 * seed), seed=seed) for seed in (2, 0, 1)]
    pairs = pair_runs(method, baseline, DICE)

    assert pairs.seeds == [0, 1, 2]
    assert pairs.values == pytest.approx(np.array([[0.0, 0.0], [0.1, 0.1], [0.2, 0.2]]))


def test_structures_are_averaged_within_a_case_before_pairing(make_run, run_of):
    method = run_of("GBDL", {"x": 0.9})
    rows = [{"case": "x", "structure": name, "dice": dice, "empty": ""} for name, dice in (("a", 0.4), ("b", 0.8))]
    method, baseline = (replace(method, per_case=part) for part in ([row | {"dice": 0.9} for row in rows], rows))
    assert pair_runs([method], [baseline], DICE).values == pytest.approx(np.array([[0.3]]))


def test_missing_and_unevaluated_seeds_are_left_out_and_named(run_of):
    baseline = [run_of("self-training", BASE, seed=seed) for seed in (0, 1)] + [run_of("self-training", {}, seed=2)]
    method = [run_of("GBDL", BASE, seed=seed) for seed in (1, 2, 3)]
    pairs = pair_runs(method, baseline, DICE)

    assert pairs.seeds == [1]
    assert pairs.notes == ["seed 2, 3: the baseline lacks it", "seed 0: the method lacks it"]


def test_only_cases_with_a_value_everywhere_count_and_the_rest_is_told(run_of):
    baseline = [run_of("self-training", BASE | {"d": 0.1}, seed=0), run_of("self-training", BASE, seed=1)]
    method = [run_of("GBDL", BASE, seed=0), run_of("GBDL", BASE | {"b": float("nan")}, seed=1)]
    pairs = pair_runs(method, baseline, DICE)

    assert pairs.cases == ["a", "c"]
    assert pairs.notes == ["2 of 4 test cases: the others lack a value in some run"]


def test_other_labelled_or_test_cases_cannot_be_paired(run_of):
    baseline = with_split(run_of("self-training", BASE), entries(a="test", b="test", c="test", x="labelled"), "1" * 16)
    method = with_split(run_of("GBDL", BASE), entries(a="test", b="test", c="test", y="labelled"), "2" * 16)
    pairs = pair_runs([method], [baseline], DICE)

    assert pairs.values.size == 0
    assert pairs.notes == [
        "not paired: no seed in common",
        "seed 0: left out, labelled or test cases differ (split 22222222, baseline 11111111)",
    ]


def test_other_unlabelled_cases_can_be_paired_and_are_told(run_of):
    tested = entries(a="test", b="test", c="test", x="labelled")
    baseline = with_split(run_of("self-training", BASE), tested, "1" * 16)
    method = with_split(run_of("GBDL", BASE), tested + entries(u="unlabelled"), "2" * 16)
    pairs = pair_runs([method], [baseline], DICE)

    assert pairs.seeds == [0]
    assert pairs.notes == ["seed 0: same labelled and test cases, but other unlabelled or validation cases"]


@pytest.mark.parametrize("split_hash", ["", None])
def test_runs_that_do_not_tell_their_split_cannot_be_paired(run_of, split_hash):
    runs = [run_of(method, BASE, split_hash=split_hash) for method in ("GBDL", "self-training")]
    assert "labelled or test cases differ" in pair_runs(runs[:1], runs[1:], DICE).notes[1]


def test_other_test_cases_under_the_same_split_cannot_be_paired(run_of):
    pairs = pair_runs([run_of("GBDL", {"a": 0.1})], [run_of("self-training", {"b": 0.1})], DICE)
    assert pairs.notes == ["not paired: no test case has a value in all runs"]


def test_other_structures_cannot_be_paired(run_of):
    pairs = pair_runs([run_of("GBDL", BASE)], [run_of("self-training", BASE, structure="tumour")], DICE)
    assert pairs.notes[1] == "seed 0: left out, structures differ (kidney; tumour)"


def test_a_baseline_that_was_not_run_here_is_told(run_of):
    assert pair_runs([run_of("GBDL", BASE)], [], DICE).notes == ["not paired: the baseline has no evaluated run"]


def test_patients_come_from_the_split(run_of):
    split = [{"id": case, "role": "test", "patient": "Jane" if case < "c" else "Joe"} for case in BASE]
    runs = [with_split(run_of(method, BASE), split, "1" * 16) for method in ("GBDL", "self-training")]
    assert pair_runs(runs[:1], runs[1:], DICE).patients == ["Jane", "Jane", "Joe"]
