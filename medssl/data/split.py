"""Who is labelled, unlabelled, validation and test: drawn once from a seed or read from lists, written with a hash."""

import hashlib
import json
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medssl.core.errors import ConfigError, DataError
from medssl.core.files import write_text_atomically
from medssl.core.progress import say
from medssl.core.stored_paths import WRITTEN, is_there, located, places_of_writing, tried_places
from medssl.data.datasets import Case, DatasetFacts, DataSource

SHOWN_PLACES = 4
ROLES = ("labelled", "unlabelled", "validation", "test")


@dataclass(frozen=True)
class Split:
    """Cases that each carry a `role`; `hash` names this very assignment of case ids to roles."""

    cases: list[Case]
    origin: dict[str, Any]

    def __post_init__(self) -> None:
        _refuse_shared_patients(self.cases)

    def role(self, name: str) -> list[Case]:
        """The cases with role `name`, in order of their ids."""
        return [case for case in self.cases if case["role"] == name]

    def with_hidden_labels(self, count: int) -> list[Case]:
        """Up to `count` unlabelled cases that have a label all the same: it may tell how good pseudo-labels are."""
        return [case for case in self.role("unlabelled") if "label" in case][:count]

    def without_label(self, role: str) -> list[str]:
        """The ids of the cases of a role that have no label."""
        return [case["id"] for case in self.role(role) if "label" not in case]

    @property
    def hash(self) -> str:
        """First 16 hex digits of the SHA-256 over the sorted (id, role) pairs."""
        pairs = sorted((case["id"], case["role"]) for case in self.cases)
        return hashlib.sha256(json.dumps(pairs).encode()).hexdigest()[:16]

    @property
    def counts(self) -> dict[str, int]:
        return {name: len(self.role(name)) for name in ROLES}

    def missing_test(self) -> str:
        """What a training without test cases lacks, and the way out; empty where there are test cases."""
        if self.role("test"):
            return ""
        with_label = sum("label" in case for case in self.cases)
        if self.origin.get("lists"):
            way_out = "Name test cases in test.list."
        elif with_label < 2:
            way_out = "Label one more scan: of two labels, one is kept for testing."
        else:
            way_out = f"Give --test a number from 1 on, below the {with_label} cases with a label."
        return (
            "the split has no test case. So the training ends without an evaluation, and its report has no scores. "
            + way_out
        )

    def write(self, path: str | Path) -> None:
        """Write the split as JSON; ConfigError if the file holds another split (a run must not change its cases)."""
        if Path(path).is_file():
            require_same_split(path, read_split(path).hash, self.hash)
            return
        head = {"hash": self.hash, "counts": self.counts, "origin": self.origin}
        content = {**head, WRITTEN: places_of_writing(Path(path).parent), "cases": self.cases}
        write_text_atomically(path, json.dumps(content, indent=1))


def split_cases(
    source: DataSource,
    labelled: int | float | None = None,
    unlabelled: int | float | None = None,
    validation: int | float | None = None,
    test: int | float | None = None,
    seed: int = 0,
    split_seed: int = 0,
    lists_dir: str | Path | None = None,
    output_file: str | Path | None = None,
    folds: int | None = None,
    fold: int = 0,
) -> Split:
    """The split of `source`, written to `output_file` if one is given.

    split_seed draws test and validation cases, seed the labelled ones among the rest; for one seed and the same
    validation cases, fewer labels are a subset of more. A number below 1 is a fraction of what there is to choose from.
    With folds, split_seed divides the cases with a label into so many parts, and one of them is tested on.
    With lists_dir, test.list gives the test cases and the first `labelled` cases of train.list are the labelled ones.
    Numbers left out come from the data set's facts; where they name a published preset (KiTS19 16/144), all its
    training cases are used and none is kept for validation. The same holds, and is told, where `labelled` asks for all
    training cases: the upper bound of a table. Cases of one patient stay together; a case without a label
    can only be unlabelled.
    """
    facts = source.facts
    _refuse_negative(labelled=labelled, unlabelled=unlabelled, validation=validation, test=test)
    is_preset = labelled in {preset[0] for preset in facts.presets} or (labelled is None and bool(facts.presets))
    _refuse_two_tests(test, lists_dir, folds)
    if lists_dir is not None:
        pool, test_cases = _from_lists(source.cases, Path(lists_dir))
        validation = 0 if validation is None else validation
    else:
        if folds is not None:
            pool, test_cases = _take_fold(source, folds, fold, split_seed)
        else:
            pool, test_cases = _draw_test(source, facts.test_cases if test is None else test, split_seed)
        if validation is None:
            validation = 0 if is_preset or _takes_all_labels(pool, labelled) else facts.validation_cases
    validation_cases, pool = _take_validation(pool, validation, split_seed, ordered=lists_dir is not None)
    if lists_dir is None:
        pool = _shuffled_patients(pool, seed)
    labelled_cases = _take_labelled(pool, _labelled_number(facts, pool, labelled), source.root)
    chosen = {case["id"] for case in labelled_cases}
    rest = [case for case in pool if case["id"] not in chosen]
    if unlabelled is not None:
        if unlabelled > len(rest):
            raise ConfigError(f"unlabelled {unlabelled}: only {len(rest)} cases are left. Ask for fewer.")
        rest = rest[: _count(unlabelled, len(rest))]
    roles = zip(ROLES, (labelled_cases, rest, validation_cases, test_cases), strict=True)
    cases = [{**case, "role": role} for role, group in roles for case in sorted(group, key=lambda c: c["id"])]
    origin = {"dataset": facts.name, "seed": seed, "split_seed": split_seed, "lists": lists_dir is not None}
    if folds is not None:
        origin |= {"folds": folds, "fold": fold}
    split = Split(cases, origin)
    if output_file is not None:
        split.write(output_file)
    return split


def read_split(path: str | Path) -> Split:
    """The split stored at `path`, its files where they are now; DataError if its hash does not fit its content.

    A file that is nowhere keeps its path: `require_scans` says which.
    """
    content = _read_content(path)
    try:
        folder, written = Path(path).parent, content.get(WRITTEN)
        cases = [_with_files(case, folder, written) for case in content["cases"]]
        split, stored = Split(cases, content["origin"]), content["hash"]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _not_a_split(path, error) from error
    if split.hash != stored:
        raise DataError(f"{path}: the hash {stored} does not fit the cases ({split.hash}). Was it edited?")
    return split


def require_scans(path: str | Path, cases: Sequence[Case]) -> None:
    """Raise DataError if scans or labels of `cases`, read from the split at `path`, are nowhere to be found."""
    missing = [case for case in cases if not all(is_there(case[key]) for key in ("image", "label") if key in case)]
    if not missing:
        return
    address = next(missing[0][key] for key in ("image", "label") if not is_there(missing[0][key]))
    tried = tried_places(address, Path(path).parent, _read_content(path).get(WRITTEN))
    raise DataError(
        f"{path}: the files of {len(missing)} of {len(cases)} cases are not there, first '{missing[0]['id']}'. Tried: "
        f"{', '.join(tried[:SHOWN_PLACES])}. Put the data set back to one of these places, or a link to it."
    )


def _read_content(path: str | Path) -> dict[str, Any]:
    try:
        return json.loads(Path(path).read_text())
    except (OSError, ValueError) as error:
        raise _not_a_split(path, error) from error


def _not_a_split(path: str | Path, error: Exception) -> DataError:
    return DataError(f"{path}: not a split file ({type(error).__name__}: {error}). Expected the split.json of a run.")


def _with_files(case: Case, folder: Path, written: Mapping[str, Any] | None) -> Case:
    return {key: located(value, folder, written) if key in ("image", "label") else value for key, value in case.items()}


def require_same_split(path: str | Path, found: str, wanted: str) -> None:
    """ConfigError if the split `found` at `path` is not the one that this run would use."""
    if found != wanted:
        raise ConfigError(
            f"{path}: holds split {found}, this run would use {wanted}. "
            "Resume with the same data, labelled, seed and split keys, or choose another --output_dir."
        )


def _labelled_number(facts: DatasetFacts, pool: Sequence[Case], labelled: int | float | None) -> int:
    with_label = sum("label" in case for case in pool)
    if labelled is not None:
        return _count(labelled, with_label)
    if facts.presets:
        return facts.presets[0][0]
    return with_label if facts.name == "folder" else max(1, len(pool) // 10)


def _takes_all_labels(pool: Sequence[Case], labelled: int | float | None) -> bool:
    """Whether `labelled` asks for all training cases with a label; then says that none is kept for validation."""
    with_label = sum("label" in case for case in pool)
    if labelled is None or labelled != with_label:
        return False
    say(f"labelled {labelled}: these are all training cases with a label, so none is kept for validation.")
    return True


def _refuse_negative(**numbers: int | float | None) -> None:
    for name, number in numbers.items():
        if number is not None and number < 0:
            raise ConfigError(f"{name} {number}: a number of cases cannot be negative. Give 0 or more.")


def _count(number: int | float, total: int) -> int:
    return round(number * total) if 0 < number < 1 else int(number)


def _draw_test(source: DataSource, number: int | float, split_seed: int) -> tuple[list[Case], list[Case]]:
    with_label = [case for case in source.cases if "label" in case]
    wanted = _count(number, len(with_label))
    if wanted >= len(with_label):
        raise ConfigError(
            f"{source.root}: {wanted} test cases asked for, {len(with_label)} cases have a label. Give --test a number "
            "that leaves labels for training."
        )
    test = _whole_patients(_shuffled_patients(with_label, split_seed), wanted)
    patients = {case["patient"] for case in test}
    return [case for case in source.cases if case["patient"] not in patients], test


def _refuse_two_tests(test: int | float | None, lists_dir: str | Path | None, folds: int | None) -> None:
    """ConfigError if more than one of these chooses the test cases."""
    given = {"--test": test, "--lists_dir": lists_dir, "--folds": folds}
    named = [name for name, value in given.items() if value is not None]
    if folds is not None and len(named) > 1:
        raise ConfigError(f"{' and '.join(named)}: each chooses the test cases. Give one of them.")


def _take_fold(source: DataSource, folds: int, fold: int, split_seed: int) -> tuple[list[Case], list[Case]]:
    """Cases to train with, and those of one fold; patients are dealt out to the folds one by one."""
    if fold >= folds:
        raise ConfigError(f"fold {fold}: there are {folds} folds. Give --fold a number from 0 to {folds - 1}.")
    ordered = _shuffled_patients([case for case in source.cases if "label" in case], split_seed)
    patients = list(_by_patient(ordered))
    if len(patients) < folds:
        raise ConfigError(f"{source.root}: {folds} folds, but {len(patients)} patients with a label. Give fewer.")
    tested = set(patients[fold::folds])
    pool = [case for case in source.cases if case["patient"] not in tested]
    return pool, [case for case in ordered if case["patient"] in tested]


def _take_validation(
    pool: list[Case], number: int | float, split_seed: int, ordered: bool
) -> tuple[list[Case], list[Case]]:
    """Validation cases and what is left; from the end of the list where the order carries meaning."""
    candidates = [case for case in pool if "label" in case]
    wanted = _count(number, len(candidates))
    order = candidates[::-1] if ordered else _shuffled_patients(candidates, split_seed + 1)
    patients = {case["patient"] for case in _whole_patients(order, wanted)}
    return [c for c in candidates if c["patient"] in patients], [c for c in pool if c["patient"] not in patients]


def _take_labelled(pool: list[Case], number: int, root: Path) -> list[Case]:
    with_label = [case for case in pool if "label" in case]
    if not 0 < number <= len(with_label):
        raise ConfigError(
            f"labelled {number}: {root} has {len(with_label)} training cases with a label (after test and "
            "validation). Choose between 1 and that, or give fewer to --test, or --validation 0."
        )
    return with_label[:number]


def _by_patient(cases: Sequence[Case]) -> dict[str, list[Case]]:
    groups: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        groups[case["patient"]].append(case)
    return groups


def _shuffled_patients(cases: Sequence[Case], seed: int) -> list[Case]:
    """`cases` in an order drawn from `seed`, those of one patient side by side."""
    groups = _by_patient(sorted(cases, key=lambda case: case["id"]))
    patients = sorted(groups)
    random.Random(seed).shuffle(patients)  # noqa: S311  (a split, no secret)
    return [case for patient in patients for case in groups[patient]]


def _whole_patients(ordered: Sequence[Case], wanted: int) -> list[Case]:
    """The first patients of `ordered` until at least `wanted` cases are taken."""
    taken: list[Case] = []
    for group in _by_patient(ordered).values():
        if len(taken) >= wanted:
            break
        taken += group
    return taken


def _from_lists(cases: Sequence[Case], folder: Path) -> tuple[list[Case], list[Case]]:
    """(training cases in the order of train.list, test cases); DataError for an id that has no scan."""
    known = {case["id"]: case for case in cases}
    chosen = []
    for name in ("train.list", "test.list"):
        path = folder / name
        if not path.is_file():
            raise DataError(f"{path}: no such file. lists_dir must hold train.list and test.list, one case id a line.")
        ids = [line.strip() for line in path.read_text().splitlines() if line.strip()]
        missing = [i for i in ids if i not in known]
        if missing:
            raise DataError(f"{path}: {len(missing)} ids have no scan, first '{missing[0]}'. Check --dataset_dir.")
        doubled = [i for i in ids if ids.count(i) > 1]
        if doubled:
            raise DataError(f"{path}: '{doubled[0]}' is there {ids.count(doubled[0])} times. Name each case once.")
        chosen.append([known[i] for i in ids])
    training, test = chosen
    bare = [case["id"] for case in test if "label" not in case]
    if bare:
        raise DataError(f"{folder / 'test.list'}: {len(bare)} cases have no label, first '{bare[0]}'. Leave them out.")
    return training, test


def _refuse_shared_patients(cases: Sequence[Case]) -> None:
    sides: dict[str, set[str]] = defaultdict(set)
    for case in cases:
        sides[case["patient"]].add(case["role"] if case["role"] in ("validation", "test") else "training")
    both = sorted(patient for patient, own_sides in sides.items() if len(own_sides) > 1)
    if both:
        ids = [case["id"] for case in cases if case["patient"] == both[0]]
        where = " and ".join(sorted(sides[both[0]], reverse=True))
        raise DataError(f"{', '.join(ids)}: the same patient is in {where}. Keep a patient on one side.")
