"""Every number that is measured on scans: its unit, whether more or less of it is better, how it is shown."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Direction = Literal["up", "down", "none"]
ARROWS: dict[Direction, str] = {"up": " ↑", "down": " ↓", "none": ""}
BETTER: dict[Direction, str] = {"up": "more", "down": "less", "none": "neither more nor less"}


@dataclass(frozen=True)
class Unit:
    """name: empty for a share of 1. Differences are shown in `difference`, `scale` times larger, with `decimals`."""

    name: str
    difference: str
    decimals: int
    scale: float = 1.0


SHARE = Unit("", "points", 2, scale=100.0)
MILLIMETRES = Unit("mm", "mm", 2)
VOXELS = Unit("voxels", "voxels", 2)
MILLILITRES = Unit("ml", "ml", 2)
SECONDS = Unit("s", "s", 2)
BITS = Unit("bits", "bits", 4)
NATS = Unit("nats", "nats", 4)


@dataclass(frozen=True)
class Metric:
    """name: the column of a table on disk. label: its name in tables. thesis_label: where methods are compared, if the
    thesis has another. axis: on the axis of a figure, if it is another. meaning: what it says, in a few words.
    importance: 1 for the last one to be left out where a table is too narrow for all.
    """

    name: str
    label: str
    direction: Direction = "none"
    unit: Unit = SHARE
    decimals: int = 3
    thesis_label: str = ""
    axis: str = ""
    meaning: str = ""
    importance: int = 9

    @property
    def title(self) -> str:
        """'HD95 (mm)'."""
        return self._with_unit(self.label)

    @property
    def comparison_title(self) -> str:
        """'95HD (mm) ↓': as in the thesis, with what is better."""
        return self._with_unit(self.comparison_label) + ARROWS[self.direction]

    @property
    def comparison_label(self) -> str:
        """'95HD'."""
        return self.thesis_label or self.label

    @property
    def percent_title(self) -> str:
        """'Error (%) ↓'."""
        return f"{self.label} (%){ARROWS[self.direction]}"

    @property
    def axis_title(self) -> str:
        return self.axis or self.title

    @property
    def better(self) -> str:
        """'more', 'less' or 'neither more nor less'."""
        return BETTER[self.direction]

    @property
    def option(self) -> str:
        """Its name on the command line: 'hd95' of `hd95_mm`."""
        return self.name.removesuffix("_mm")

    def text(self, value: float) -> str:
        """A value with as many decimals as the metric deserves; an en dash where there is none."""
        return f"{value:.{self.decimals}f}" if math.isfinite(value) else "–"

    def _with_unit(self, label: str) -> str:
        return f"{label} ({self.unit.name})" if self.unit.name else label


def metric_names(metrics: Iterable[Metric]) -> tuple[str, ...]:
    """The columns of these metrics in a table on disk."""
    return tuple(metric.name for metric in metrics)


DICE = Metric("dice", "Dice", "up", importance=1)
JACCARD = Metric("jaccard", "Jaccard", "up", importance=4)
HD95 = Metric("hd95_mm", "HD95", "down", MILLIMETRES, 2, thesis_label="95HD", importance=2)
ASD = Metric("asd_mm", "ASD", "down", MILLIMETRES, 2, importance=3)
ASSD = Metric("assd_mm", "ASSD", "down", MILLIMETRES, 2, importance=5)
# lengths in voxels of the network's grid, as the authors' released code has them: only where they were asked for
HD95_VOXELS = Metric("hd95_voxels", "HD95", "down", VOXELS, 2, thesis_label="95HD", importance=10)
ASD_VOXELS = Metric("asd_voxels", "ASD", "down", VOXELS, 2, importance=11)
ASSD_VOXELS = Metric("assd_voxels", "ASSD", "down", VOXELS, 2, importance=12)
PAVPU = Metric(
    "pavpu",
    "PAvPU",
    "up",
    importance=7,
    meaning="share of patches that are accurate and certain, or wrong and uncertain; higher is better",
)
UCE = Metric(
    "uce",
    "UCE",
    "down",
    decimals=4,
    importance=8,
    meaning="expected gap between error rate and uncertainty; lower is better",
)
ECE = Metric(
    "ece",
    "ECE",
    "down",
    decimals=4,
    importance=6,
    meaning="expected gap between accuracy and confidence; lower is better",
)
ENTROPY_BITS = Metric(
    "mean_entropy_bits",
    "Entropy",
    unit=BITS,
    decimals=4,
    meaning="predictive entropy, mean over the voxels of a case",
)
LATENT_SHARE = Metric(
    "latent_share",
    "Latent share",
    decimals=4,
    importance=9,
    meaning="mutual information of draws of a latent over entropy; below 0.01 the latent hardly reaches the output",
)
LABEL_ML = Metric("label_ml", "Label", unit=MILLILITRES, decimals=1)
PREDICTED_ML = Metric("predicted_ml", "Predicted", unit=MILLILITRES, decimals=1)
CASE_SECONDS = Metric("seconds", "Time", unit=SECONDS, decimals=1)

STRUCTURE_METRICS = (DICE, JACCARD, HD95, ASD, ASSD)  # a value for every structure of a case
VOXEL_METRICS = (HD95_VOXELS, ASD_VOXELS, ASSD_VOXELS)
CASE_METRICS = (PAVPU, UCE, ECE, ENTROPY_BITS)  # one for the whole case
SCAN_METRICS = STRUCTURE_METRICS + VOXEL_METRICS + CASE_METRICS
SCAN_COLUMNS = (LABEL_ML, PREDICTED_ML, CASE_SECONDS)  # of the table of cases, besides: no measure of quality
