"""Every data set medssl knows by name, and all facts about it: labels, CT window, crop, split sizes, epochs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from medssl.core.errors import ConfigError, DataError
from medssl.core.flags import flag
from medssl.data import layouts
from medssl.data.label_ids import IdsOfLabels, described_structures, read_label_ids, structure_names
from medssl.data.phantom import write_phantoms

Case = dict[str, Any]
SOFT_TISSUE_HU = (-100.0, 250.0)
AROUND_STRUCTURES, AT_CENTRE = "structures", "centre"  # where the region of a slice lies


@dataclass(frozen=True)
class Target:
    """What is segmented: the ids found in the label files mapped to classes (others become background), and names."""

    label_map: Mapping[int, int]
    structures: Mapping[int, str]


@dataclass(frozen=True)
class Geometry:
    """How a scan becomes the network's grid, thesis appendix A: resized slices, a region of them, random patches.

    slice_size and region_size are (height, width) or None to keep the scan's own; patch_size is (height, width, depth).
    depth: the number of slices that scans are resized to, None to keep the scan's own.
    region: "structures" is around the structures of labelled training cases, around the body of unlabelled ones, and
    whole slices elsewhere; "centre" is the middle of every slice, in training, validation and prediction alike, as
    appendix A has it.
    """

    slice_size: tuple[int, int] | None = (256, 256)
    region_size: tuple[int, int] | None = (160, 160)
    patch_size: tuple[int, int, int] = (128, 128, 32)
    region: str = AROUND_STRUCTURES
    depth: int | None = None


@dataclass(frozen=True)
class DatasetFacts:
    """The facts of one data set; `open_dataset` adds what only the files can tell."""

    name: str
    modality: str
    targets: Mapping[str, Target]
    find: Callable[[Path], list[Case]]
    window: tuple[float, float] | None = None
    geometry: Geometry = Geometry()
    test_cases: int | float = 0.3
    validation_cases: int | float = 0.1
    presets: tuple[tuple[int, int], ...] = ()
    epochs: int = 120
    msd_task: str | None = None
    target: Target = field(default_factory=lambda: Target({}, {}))

    @property
    def num_classes(self) -> int:
        """Number of classes with the background."""
        return 1 + len(self.target.structures)

    @property
    def label_ids(self) -> list[int]:
        """Every id a label file of this data set may hold."""
        known = {0} | {i for target in self.targets.values() for i in target.label_map}
        return sorted(known)


_WHOLE_SCAN = Geometry(slice_size=None, region_size=None, patch_size=(128, 128, 32))

DATASETS: dict[str, DatasetFacts] = {
    facts.name: facts
    for facts in (
        DatasetFacts(
            name="kits19",
            modality="CT",
            targets={
                "kidney_and_tumour": Target({1: 1, 2: 1}, {1: "kidney and tumour"}),
                "tumour": Target({2: 1}, {1: "tumour"}),
                "separate": Target({1: 1, 2: 2}, {1: "kidney", 2: "tumour"}),
            },
            find=layouts.find_kits19,
            window=SOFT_TISSUE_HU,
            test_cases=50,
            presets=((16, 144), (4, 156)),
        ),
        DatasetFacts(
            name="left_atrium",
            modality="MR",
            # the raw challenge files mark the cavity with 255, the SSL literature's h5 files with 1
            targets={"left_atrium": Target({1: 1, 255: 1}, {1: "left atrium"})},
            find=layouts.find_left_atrium,
            test_cases=20,
            presets=((16, 64), (8, 72)),
            epochs=240,
        ),
        DatasetFacts(
            name="liver",
            modality="CT",
            targets={
                "liver": Target({1: 1, 2: 1}, {1: "liver"}),
                "tumour": Target({2: 1}, {1: "tumour"}),
                "separate": Target({1: 1, 2: 2}, {1: "liver", 2: "tumour"}),
            },
            find=layouts.find_decathlon,
            window=SOFT_TISSUE_HU,
            test_cases=31,
            presets=((5, 95),),
            msd_task="Task03_Liver",
        ),
        DatasetFacts(
            name="hippocampus",
            modality="MR",
            targets={
                "separate": Target({1: 1, 2: 2}, {1: "anterior", 2: "posterior"}),
                "whole": Target({1: 1, 2: 1}, {1: "hippocampus"}),
            },
            find=layouts.find_decathlon,
            geometry=Geometry(slice_size=None, region_size=None, patch_size=(48, 64, 32)),
            msd_task="Task04_Hippocampus",
        ),
        DatasetFacts(
            name="phantom",
            modality="CT",
            targets={
                "kidney": Target({1: 1, 2: 1}, {1: "kidney"}),
                "separate": Target({1: 1, 2: 2}, {1: "kidney", 2: "lesion"}),
            },
            find=layouts.find_phantoms,
            window=SOFT_TISSUE_HU,
            geometry=Geometry(slice_size=None, region_size=None, patch_size=(64, 64, 16)),
        ),
        DatasetFacts(
            name="folder",
            modality="any",
            targets={},
            find=layouts.find_folder,
            geometry=_WHOLE_SCAN,
        ),
    )
}


@dataclass(frozen=True)
class DataSource:
    """A data set on disk: its facts and its cases, not yet split.

    ids_of_labels: what is in each label file, where nothing else told which ids there are.
    """

    facts: DatasetFacts
    cases: list[Case]
    root: Path
    ids_of_labels: IdsOfLabels = field(default_factory=dict)


def dataset_facts(name: str) -> DatasetFacts:
    """The facts of the data set called `name`; ConfigError with the known names otherwise."""
    if name not in DATASETS:
        raise ConfigError(f"dataset_name '{name}' is unknown. Known: {', '.join(sorted(DATASETS))}.")
    return DATASETS[name]


def open_dataset(
    name: str,
    dataset_dir: str | Path,
    target: str | None = None,
    window: tuple[float, float] | None = None,
    download: bool | str = False,
) -> DataSource:
    """The cases of data set `name` below `dataset_dir` with the facts that hold for them.

    target: one of the data set's targets (default: its first). window: (low, high) in Hounsfield units, replaces the
    data set's. download: fetch a Medical Segmentation Decathlon task that is missing (needs internet). Raises
    ConfigError for unknown names, DataError where the folder does not hold the data set.
    """
    facts, root = dataset_facts(name), Path(dataset_dir).expanduser()
    if flag(download, "download"):
        layouts.download_decathlon(facts.msd_task, root)
    if name == "phantom" and not (root / "phantom.json").is_file():
        write_phantoms(root)
    if not root.is_dir():
        raise DataError(f"{root}: no such folder. Give the folder of the {name} data set with --dataset_dir.")
    cases = facts.find(root)
    ids = read_label_ids(cases) if name == "folder" and not described_structures(root) else {}
    facts = _complete(facts, cases, root, ids)
    if window is not None:
        if len(window) != 2 or not window[0] < window[1]:
            raise ConfigError(f"window {list(window)}: expected [low, high] in Hounsfield units, low below high.")
        facts = replace(facts, window=(float(window[0]), float(window[1])))
    return DataSource(replace(facts, target=_chosen_target(facts, target)), cases, root, ids)


def _complete(facts: DatasetFacts, cases: list[Case], root: Path, ids: IdsOfLabels) -> DatasetFacts:
    """`facts` with what only the files tell: labels and sizes of a folder, a phantom's modality, an atrium's layout."""
    if facts.name == "folder":
        names = structure_names(root, cases, ids)
        target = Target({i: n for n, i in enumerate(names, 1)}, dict(enumerate(names.values(), 1)))
        return replace(facts, targets={"labels": target}, geometry=Geometry(*layouts.fitting_sizes(cases)))
    if facts.name == "phantom" and layouts.phantom_modality(root) == "MR":
        return replace(facts, modality="MR", window=None)
    if facts.name == "left_atrium" and ".h5::" in cases[0]["image"]:
        # these files are cut to the atrium already: a centre crop of them would cut through it
        return replace(facts, geometry=_WHOLE_SCAN)
    return facts


def _chosen_target(facts: DatasetFacts, name: str | None) -> Target:
    if name is None:
        return next(iter(facts.targets.values()))
    if name not in facts.targets:
        raise ConfigError(f"target '{name}' is unknown for {facts.name}. Known: {', '.join(facts.targets)}.")
    return facts.targets[name]
