"""Test folds of one experiment count as one run: every case is tested once."""

from dataclasses import replace

import pytest

from medssl.core.errors import DataError
from medssl.metrics.catalogue import DICE
from medssl.report.comparison.folds import merged_folds
from medssl.report.comparison.pairing import pair_runs


def folds_of(run_of, method, dice, seed=0):
    """A run for each fold, one case in each."""
    whole = run_of(method, dice, seed=seed)
    runs = []
    for fold, case in enumerate(dice):
        facts = whole.facts | {"folds": len(dice), "fold": fold, "split_hash": f"hash{fold}"}
        rows = [row for row in whole.per_case if row["case"] == case]
        split = {"cases": [{"id": case, "role": "test", "patient": case}]}
        runs.append(replace(whole, facts=facts, split=split, per_case=rows))
    return runs


def test_folds_are_joined_and_paired_case_by_case(run_of):
    method = folds_of(run_of, "BCP", {"a": 0.6, "b": 0.8})
    baseline = folds_of(run_of, "supervised", {"a": 0.5, "b": 0.6})
    ours, theirs = merged_folds(method[::-1]), merged_folds(baseline)
    assert len(ours) == len(theirs) == 1 and ours[0].facts["fold"] == [0, 1]
    pairs = pair_runs(ours, theirs, DICE)
    assert pairs.cases == pairs.patients == ["a", "b"] and not pairs.notes
    assert pairs.values.tolist() == [pytest.approx([0.1, 0.2])]


def test_runs_without_folds_and_other_seeds_stay_apart(run_of):
    plain = [run_of("supervised", {"a": 0.5}, seed=seed) for seed in (0, 1)]
    folds = folds_of(run_of, "BCP", {"a": 0.6, "b": 0.8}) + folds_of(run_of, "BCP", {"a": 0.7, "b": 0.9}, seed=1)
    merged = merged_folds([*plain, *folds])
    assert merged[:2] == plain and [run.facts["seed"] for run in merged[2:]] == [0, 1]


def test_a_fold_that_comes_twice_is_refused(run_of):
    folds = folds_of(run_of, "BCP", {"a": 0.6, "b": 0.8})
    with pytest.raises(DataError, match=r"seed and fold 0\. Compare one of them"):
        merged_folds([*folds, folds[0]])
