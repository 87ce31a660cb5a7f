"""The data of a bundle for scans: which cases there are, who plays which role, how they become patches."""

from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import ignite.distributed as idist
from torch.utils.data import DataLoader

from medssl.bundle.keys import given_options
from medssl.core.flags import flag
from medssl.core.options import option
from medssl.data.dataset_check import check_split
from medssl.data.datasets import AROUND_STRUCTURES, AT_CENTRE, DatasetFacts, DataSource, open_dataset
from medssl.data.findings import require_valid, warning_lines
from medssl.data.mixing import MixedDataset, training_dataset
from medssl.data.pipeline import Pipeline
from medssl.data.sampling import AugmentedDataset, cache_cases, thesis_steps_per_epoch, whole_scans
from medssl.data.split import Split, split_cases
from medssl.data.validate import check_cases
from medssl.methods.facts import MethodFacts

Sizes = list[int]
CHECKS = "data_checks.json"
ON_LABEL = "label"
REGIONS = (AROUND_STRUCTURES, AT_CENTRE, ON_LABEL)


@dataclass(frozen=True)
class ScanDataOptions:
    """What a training on scans is told of its data."""

    dataset_name: str = option("folder", "the data set: kits19, left_atrium, liver, hippocampus, phantom or folder")
    dataset_dir: str = option("data", "the folder of the data set", place=True)
    target: str | None = option(None, "which of the data set's targets is segmented; default: the first")
    window: list[float] | None = option(
        None, "range of CT values, [low, high] in Hounsfield units; default: the data set's", length=2
    )
    download: bool = option(
        False, "download the data set if it is missing (Medical Segmentation Decathlon only)", place=True
    )
    labelled: int | float | None = option(
        None, "number, or share below 1, of cases trained with labels; default: a preset"
    )
    unlabelled: int | float | None = option(
        None, "number, or share below 1, of cases trained without labels; default: the rest"
    )
    validation: int | float | None = option(
        None, "number of validation cases, or their share (below 1) of the training cases"
    )
    test: int | float | None = option(None, "number of test cases, or their share (below 1) of all cases")
    folds: int | None = option(
        None, "parts that the cases are divided into, one of them tested on, in place of test", at_least=2
    )
    fold: int = option(0, "which of the folds is tested on, from 0 on", at_least=0)
    lists_dir: str | None = option(
        None, "folder with train.list and test.list, which name the training and test cases", place=True
    )
    split_seed: int = option(0, "random seed that draws the validation and test cases")
    seed: int = option(0, "random seed of the labelled cases, the first weights and all else", incidental=True)
    slice_size: Sizes | None = option(None, "[height, width] that slices are resized to", at_least=1, length=2)
    depth: int | None = option(None, "number of slices that scans are resized to; default: their own", at_least=1)
    region_size: Sizes | None = option(
        None, "[height, width] of the region that patches come from", at_least=1, length=2
    )
    patch_size: Sizes | None = option(None, "[height, width, depth] of patches and windows", at_least=1, length=3)
    region: str | None = option(
        None,
        "where the region lies: around structures (training only; default), at the centre of all slices (test, too: "
        "thesis, appendix A), or on the label (as paper_crop)",
        choices=REGIONS,
    )
    strong_labels: bool = option(False, "change the intensities of labelled patches strongly, too")
    paper_crop: bool = option(False, "centre the region of every case on its label, of test cases too; reports say so")
    cache: str = option(
        "memory", "where prepared cases are kept between epochs", choices=("memory", "disk", "none"), incidental=True
    )
    cache_dir: str = option("", "folder of the cache, for cache disk", place=True)


class ScanData:
    """The cases of a data set, their split and their way to tensors; each is made when it is first asked for."""

    def __init__(self, **listed: Any) -> None:
        self.options = given_options(ScanDataOptions, listed)

    @cached_property
    def source(self) -> DataSource:
        asked = self.options
        window = None if asked.window is None else tuple(asked.window)
        return open_dataset(asked.dataset_name, asked.dataset_dir, asked.target, window, asked.download)  # type: ignore[arg-type]

    @property
    def facts(self) -> DatasetFacts:
        return self.source.facts

    @property
    def num_classes(self) -> int:
        return self.facts.num_classes

    @cached_property
    def split(self) -> Split:
        names = ("labelled", "unlabelled", "validation", "test", "seed", "split_seed", "lists_dir", "folds", "fold")
        asked = asdict(self.options)
        return split_cases(self.source, **{name: asked[name] for name in names})

    @cached_property
    def pipeline(self) -> Pipeline:
        asked = self.options
        sizes = (asked.slice_size, asked.region_size, asked.patch_size)
        on_label = asked.paper_crop or asked.region == ON_LABEL
        region = None if asked.region == ON_LABEL else asked.region
        strong = flag(asked.strong_labels, "strong_labels")
        return Pipeline(self.facts, *sizes, on_label, region=region, depth=asked.depth, strong_labels=strong)

    @property
    def patch_size(self) -> tuple[int, int, int]:
        return self.pipeline.geometry.patch_size

    def check(self, runs_dir: str | Path) -> None:
        """Raise DataError if a case is bad, tell what is odd; the first process looks for all.

        Files that have not changed are not read again in later runs.
        """
        if idist.get_rank() != 0:
            return
        cases = self.split.cases
        print(f"checking {len(cases)} cases", flush=True)
        findings = check_split(self.source, cases, Path(runs_dir) / CHECKS)
        require_valid(findings)
        for line in warning_lines(findings):
            print(line, flush=True)
        if lack := self.split.missing_test():
            print(f"warning: {lack}", flush=True)

    def patches_for(self, method: MethodFacts) -> AugmentedDataset | MixedDataset:
        """What a method trains on, made anew: augmented patches of the cases it learns from, in the views it needs."""
        kept = (self.options.cache, self.options.cache_dir)
        if method.learns_from_unlabelled:
            return training_dataset(self.split, self.pipeline, *kept, method.views)
        cached = cache_cases(self.split.role("labelled"), self.pipeline.preprocessing(training=True), *kept)
        return AugmentedDataset(cached, self.pipeline.augmentation(views=method.views))

    @cached_property
    def validation_scans(self) -> DataLoader:
        return self.whole_scans(self.split.role("validation"))

    def whole_scans(self, cases: list[dict[str, Any]]) -> DataLoader:
        """Cases with their labels, whole and one at a time."""
        return whole_scans(cases, self.pipeline, self.options.cache, self.options.cache_dir)

    def steps_per_epoch(self, batch_size: int) -> int:
        """As many as the thesis has."""
        counts = self.split.counts
        return thesis_steps_per_epoch(counts["labelled"], counts["unlabelled"], batch_size)


def check_scans(cases: list[dict[str, Any]], label_ids: list[int] | None, runs_dir: str | Path) -> None:
    """Raise DataError if one of `cases` is bad; the first process looks for all."""
    if idist.get_rank() == 0:
        print(f"checking {len(cases)} cases", flush=True)
        require_valid(check_cases(cases, label_ids, Path(runs_dir) / CHECKS))
