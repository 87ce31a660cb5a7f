"""Runs that differ in their test fold only, as one run: every case is tested once."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from medssl.core.errors import DataError
from medssl.report.run import Run


def merged_folds(runs: Sequence[Run]) -> list[Run]:
    """The runs, those of one method, number of labels and seed on several folds joined; others stay as they are.

    Raises DataError where a fold comes twice.
    """
    groups: dict[tuple[Any, ...], list[Run]] = {}
    for number, run in enumerate(runs):
        groups.setdefault(_group(run, number), []).append(run)
    return [_joined(sorted(group, key=_fold)) for group in groups.values()]


def _group(run: Run, number: int) -> tuple[Any, ...]:
    """What the folds of one experiment share; a run without folds stands alone, by its number."""
    facts = run.facts
    if "folds" not in facts:
        return ("alone", number)
    return (run.method, facts["dataset"], facts["labelled"], run.paper_crop, facts["seed"], facts["folds"])


def _fold(run: Run) -> int:
    return int(run.facts.get("fold", 0))


def _joined(runs: Sequence[Run]) -> Run:
    first = runs[0]
    if len(runs) == 1:
        return first
    for one, other in pairwise(runs):
        if _fold(one) == _fold(other):
            raise DataError(
                f"{one.folder} and {other.folder}: same method, dataset, labelled cases, seed and fold {_fold(one)}. "
                "Compare one of them."
            )
    hashes = "".join(str(run.facts.get("split_hash", "")) for run in runs)
    folds = [_fold(run) for run in runs]
    facts = {**first.facts, "split_hash": hashlib.sha256(hashes.encode()).hexdigest()[:16], "fold": folds}
    cases = [case for run in runs for case in run.split.get("cases", [])]
    rows = [row for run in runs for row in run.per_case]
    return replace(first, facts=facts, split={**first.split, "cases": cases}, per_case=rows)
