"""Two methods, case by case: which of their runs and test cases can be paired, and what had to be left out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from medssl.metrics.catalogue import Metric
from medssl.report.comparison.bootstrap import Array
from medssl.report.run import PerCaseRow, Run
from medssl.report.tables import by_case, case_mean

MUST_AGREE = ("labelled", "test")  # roles of a split; unlabelled and validation cases may differ between methods


@dataclass(frozen=True)
class Pairs:
    """values: method minus baseline, (seeds, cases). patients: of every case. notes: what was left out, and why.

    Without a seed or a case in common, values are empty and the notes say why.
    """

    seeds: list[int] = field(default_factory=list)
    cases: list[str] = field(default_factory=list)
    patients: list[str] = field(default_factory=list)
    values: Array = field(default_factory=lambda: np.empty((0, 0)))
    notes: list[str] = field(default_factory=list)


def pair_runs(method: Sequence[Run], baseline: Sequence[Run], metric: Metric) -> Pairs:
    """The runs of a method and of a baseline, paired by seed and by case id; structures are averaged within a case.

    A seed counts where both have been evaluated on it, with the same labelled and test cases and the same structures. A
    case counts where every run that counts has a value for it.
    """
    ours, theirs = _by_seed(method), _by_seed(baseline)
    if not ours or not theirs:
        return Pairs(notes=[f"not paired: the {'method' if not ours else 'baseline'} has no evaluated run"])
    notes = _missing_seeds(ours, theirs)
    seeds = []
    for seed in sorted(ours.keys() & theirs.keys()):
        problem, remark = _compare_splits(ours[seed], theirs[seed])
        notes += [f"seed {seed}: {text}" for text in (problem, remark) if text]
        if not problem:
            seeds.append(seed)
    if not seeds:
        return Pairs(notes=["not paired: no seed in common", *notes])
    differences = [_case_differences(ours[seed], theirs[seed], metric) for seed in seeds]
    paired_runs = [run for seed in seeds for run in (ours[seed], theirs[seed])]
    evaluated = {row["case"] for run in paired_runs for row in run.per_case}
    cases = sorted(case for case in evaluated if all(case in by_case_of_seed for by_case_of_seed in differences))
    if not cases:
        return Pairs(notes=["not paired: no test case has a value in all runs", *notes])
    if len(cases) < len(evaluated):
        notes.append(f"{len(cases)} of {len(evaluated)} test cases: the others lack a value in some run")
    patients = {entry["id"]: str(entry.get("patient", entry["id"])) for entry in ours[seeds[0]].split.get("cases", [])}
    values = np.array([[by_case_of_seed[case] for case in cases] for by_case_of_seed in differences])
    return Pairs(seeds, cases, [patients.get(case, case) for case in cases], values, notes)


def _by_seed(runs: Sequence[Run]) -> dict[int, Run]:
    """The evaluated runs."""
    return {int(run.facts["seed"]): run for run in runs if run.per_case}


def _missing_seeds(ours: Mapping[int, Run], theirs: Mapping[int, Run]) -> list[str]:
    lacking = {"the baseline": sorted(ours.keys() - theirs.keys()), "the method": sorted(theirs.keys() - ours.keys())}
    return [f"seed {', '.join(map(str, seeds))}: {who} lacks it" for who, seeds in lacking.items() if seeds]


def _compare_splits(ours: Run, theirs: Run) -> tuple[str, str]:
    """(why the runs cannot be paired, what to know if they can); both empty for the same split and structures."""
    structures = [_structures(run.per_case) for run in (ours, theirs)]
    if structures[0] != structures[1]:
        return f"left out, structures differ ({', '.join(structures[0])}; {', '.join(structures[1])})", ""
    hashes = [str(run.facts.get("split_hash") or "none") for run in (ours, theirs)]
    if hashes[0] == hashes[1] != "none":
        return "", ""
    roles = [_roles(run) for run in (ours, theirs)]
    if roles[0] and roles[0] == roles[1]:
        return "", "same labelled and test cases, but other unlabelled or validation cases"
    return f"left out, labelled or test cases differ (split {hashes[0][:8]}, baseline {hashes[1][:8]})", ""


def _roles(run: Run) -> set[tuple[str, str]]:
    cases = run.split.get("cases", [])
    return {(entry["id"], entry["role"]) for entry in cases if entry.get("role") in MUST_AGREE}


def _case_differences(ours: Run, theirs: Run, metric: Metric) -> dict[str, float]:
    """Case -> method minus baseline, where both have a finite value over the same structures."""
    other = by_case(theirs.per_case)
    differences = {
        case: case_mean(rows, metric) - case_mean(other[case], metric)
        for case, rows in by_case(ours.per_case).items()
        if _structures(rows) == _structures(other.get(case, []))
    }
    return {case: value for case, value in differences.items() if np.isfinite(value)}


def _structures(rows: Sequence[PerCaseRow]) -> list[str]:
    return sorted({row["structure"] for row in rows})
