"""Data: known sets, splits, checks, the way from files to tensors."""

from medssl.data.datasets import DATASETS, DatasetFacts, DataSource, dataset_facts, open_dataset
from medssl.data.facts_json import facts_from_json, facts_to_json
from medssl.data.image_batches import make_image_loader
from medssl.data.layouts import scans_in
from medssl.data.mixing import MixedDataset, make_mixed_loader, training_dataset
from medssl.data.pipeline import Pipeline
from medssl.data.sampling import (
    AugmentedDataset,
    EpochSampler,
    cache_cases,
    make_loader,
    thesis_steps_per_epoch,
    whole_scans,
)
from medssl.data.slice_views import SliceViews
from medssl.data.slices import SemiSupervisedSlices, slices_at
from medssl.data.split import Split, read_split, split_cases
from medssl.data.strong_view import StrongChanges
from medssl.data.validate import check_cases, require_valid

__all__ = [
    "DATASETS",
    "AugmentedDataset",
    "DataSource",
    "DatasetFacts",
    "EpochSampler",
    "MixedDataset",
    "Pipeline",
    "SemiSupervisedSlices",
    "SliceViews",
    "Split",
    "StrongChanges",
    "cache_cases",
    "check_cases",
    "dataset_facts",
    "facts_from_json",
    "facts_to_json",
    "make_image_loader",
    "make_loader",
    "make_mixed_loader",
    "open_dataset",
    "read_split",
    "require_valid",
    "scans_in",
    "slices_at",
    "split_cases",
    "thesis_steps_per_epoch",
    "training_dataset",
    "whole_scans",
]
