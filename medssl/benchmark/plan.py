"""The trainings of a benchmark: all methods, numbers of labels, folds and seeds, with equal compute."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from medssl.core.errors import ConfigError
from medssl.core.options import names_of, unknown_name
from medssl.core.shipped_bundles import bundle_path
from medssl.data.datasets import open_dataset
from medssl.data.split import split_cases
from medssl.methods.registry import find_method, method_names
from medssl.sweep import SweepRow, Training

SUPERVISED, UPPER_BOUND = "supervised", "upper_bound"
UPPER_TITLE = "supervised, all labels"
BUNDLE = "teacher_student"  # trains every method that has no bundle of its own
# what the rows share, as far as a method takes it: else a moving average would be mistaken for a better method
INGREDIENTS = {"ema_decay": "0.99", "copy_paste": "0.667", "strong_labels": "true"}


@dataclass(frozen=True)
class BenchmarkPlan:
    """What is compared, on what, and how much each training may compute.

    passes: patch passes of every training. keys: further keys of every training; they hold against the ingredients.
    """

    dataset_name: str
    dataset_dir: Path
    methods: Sequence[str]
    labelled: Sequence[int]
    seeds: Sequence[int]
    passes: int
    output: Path
    folds: int | None = None
    overlays: Sequence[str] = ()
    keys: Mapping[str, str] = field(default_factory=dict)

    def trainings(self) -> list[Training]:
        """All trainings, a seed for all rows before the next, so that an unfinished benchmark compares what it has."""
        counts = self._upper_counts()
        cells = []
        for seed in self.seeds:
            for fold, all_labels in enumerate(counts):
                for labelled in self.labelled:
                    cells += [self._training(name, labelled, fold, seed) for name in self.methods]
                cells.append(self._training(UPPER_BOUND, all_labels, fold, seed))
        return cells

    def final_training(self, title: str) -> Training:
        """The training on all labels of the method with this title; supervised where every scan has a label.

        Nothing is kept for testing or validation: the benchmark has measured the method.
        """
        source = open_dataset(self.dataset_name, self.dataset_dir)
        labels = sum("label" in case for case in source.cases)
        has_unlabelled = labels < len(source.cases)
        name = next((name for name in self.methods if find_method(name).facts.title == title), SUPERVISED)
        row = replace(self, folds=None)._row(name if has_unlabelled else SUPERVISED, 0)
        left_out = ("folds", "test", "validation")
        keys = {key: value for key, value in self._shared().items() if key not in left_out}
        keys |= {"test": "0", "validation": "0"}
        return Training.of(replace(row, name="chosen"), self.output, labels, self.seeds[0], tuple(keys.items()))

    def _training(self, name: str, labelled: int, fold: int, seed: int) -> Training:
        return Training.of(self._row(name, fold), self.output, labelled, seed, tuple(self._shared().items()))

    def _row(self, name: str, fold: int) -> SweepRow:
        """The row of a method on one fold."""
        method = find_method(SUPERVISED if name == UPPER_BOUND else name)
        bundle = method.bundle or BUNDLE
        chosen = {} if method.bundle else {"method": SUPERVISED if name == UPPER_BOUND else name}
        if name == UPPER_BOUND:
            chosen["title"] = UPPER_TITLE
        accepted = (*names_of(method.Options), "strong_labels")
        taken = {key: value for key, value in INGREDIENTS.items() if key in accepted}
        title = name
        if self.folds is not None:
            chosen["fold"] = str(fold)
            title = f"{name}_fold{fold}"
        keys = {**taken, **chosen, **{key: value for key, value in self.keys.items() if key in taken}}
        return SweepRow(title, bundle_path(bundle), tuple(self.overlays), tuple(keys.items()))

    def _shared(self) -> dict[str, str]:
        """The keys of every training."""
        own = {
            "dataset_name": self.dataset_name,
            "dataset_dir": str(self.dataset_dir),
            "patch_passes": str(self.passes),
            "max_epochs": "null",
        }
        if self.folds is not None:
            own["folds"] = str(self.folds)
        return {**own, **self.keys}

    def _upper_counts(self) -> list[int]:
        """How many labels there are to train with at most, fold by fold."""
        source = open_dataset(self.dataset_name, self.dataset_dir)
        validation = int(self.keys["validation"]) if "validation" in self.keys else None
        test = int(self.keys["test"]) if "test" in self.keys else None
        counts = []
        for fold in range(self.folds or 1):
            split = split_cases(
                source, labelled=1, validation=validation, test=test, folds=self.folds, fold=fold if self.folds else 0
            )
            counts.append(sum("label" in case for role in ("labelled", "unlabelled") for case in split.role(role)))
        return counts


def methods_of(text: str) -> list[str]:
    """The methods that `--methods` names, `supervised` first; "all" are all that medssl has."""
    known = method_names()
    named = known if text.strip() == "all" else [name.strip() for name in text.split(",") if name.strip()]
    for name in named:
        if name not in known:
            raise ConfigError(f"methods: {unknown_name(name, known, 'method')}")
    return list(dict.fromkeys([SUPERVISED, *named]))
