"""From files to the network's input, as in the thesis' appendix A: deterministic steps, then augmentation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from monai import transforms as mt
from torch import Tensor

from medssl.core.errors import ConfigError, DataError
from medssl.core.flags import flag
from medssl.data.datasets import AROUND_STRUCTURES, AT_CENTRE, DatasetFacts, Geometry
from medssl.data.jitter import RandJitterd
from medssl.data.patch_geometry import FLIPPED_AXIS, RecordedCropd, RecordedFlipd, RecordedRotationd
from medssl.data.regions import BodyRegion, LabelRegion
from medssl.data.rotation import RandRotateInPlaned
from medssl.data.strong_view import RandStrongView, StrongChanges
from medssl.data.views import PLAIN, checked_views
from medssl.data.volumes import LoadVolumed

PAPER_SLICE_MARGIN = 8  # slices kept above and below the label with paper_crop
BACKGROUND = -1.0  # air, the lower end of the window, after scaling to [-1, 1]


@dataclass(frozen=True)
class Pipeline:
    """The transforms of one data set; every stage of training and prediction takes them from here.

    Sizes, and where the region lies, replace those of the data set's facts where they are given here. paper_crop
    centres the region with the label, of unlabelled and test cases too, as the papers do; reports then say so. strong:
    what the strong view of a patch has on top. Raises ConfigError for a region that is unknown or contradicts itself.
    """

    facts: DatasetFacts
    slice_size: Sequence[int] | None = None
    region_size: Sequence[int] | None = None
    patch_size: Sequence[int] | None = None
    paper_crop: bool = False
    jitter: float = 0.4
    rotation_degrees: float = 10.0
    flip_probability: float = 0.5
    strong: StrongChanges = field(default_factory=StrongChanges)
    region: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "paper_crop", flag(self.paper_crop, "paper_crop"))
        region = self.geometry.region
        if region not in (AROUND_STRUCTURES, AT_CENTRE):
            raise ConfigError(f"region '{region}' is unknown. Expected {AROUND_STRUCTURES} or {AT_CENTRE}.")
        if self.is_centred and self.paper_crop:
            raise ConfigError(f"region {AT_CENTRE} and paper_crop: a region has one place. Give one of them.")
        if self.is_centred and self.geometry.region_size is None:
            raise ConfigError(
                f"region {AT_CENTRE}: the data set {self.facts.name} has no region_size. Give --region_size, such as "
                "160,160."
            )

    @cached_property
    def geometry(self) -> Geometry:
        given: dict[str, Any] = {
            name: tuple(int(v) for v in size)
            for name in ("slice_size", "region_size", "patch_size")
            if (size := getattr(self, name)) is not None
        }
        if self.region is not None:
            given["region"] = self.region
        return replace(self.facts.geometry, **given)

    @property
    def is_centred(self) -> bool:
        """Whether the region is the middle of every slice, in prediction, too."""
        return self.geometry.region == AT_CENTRE

    def run_facts(self) -> dict[str, Any]:
        """What a run notes of its data."""
        return {
            "dataset": self.facts.name,
            "paper_crop": self.paper_crop and self.geometry.region_size is not None,
            "region": self.geometry.region,
            "window": self.facts.window,
            "label_map": self.facts.target.label_map,
            "structures": self.facts.target.structures,
        }

    def preprocessing(self, with_label: bool = True, training: bool = False) -> mt.Compose:
        """Case dict to scaled tensors on the network's grid: `image` in [-1, 1] and, if asked for, `label` classes.

        In training the slices are cropped to the region: around the structures of a labelled case, around the body of
        an unlabelled one. Outside of training whole slices are kept, with their history, so that predictions can be
        inverted to the scan's own grid. Only paper_crop lets labels decide what is seen of other cases. The region
        "centre" is cut from every slice, always; outside of it all is predicted as background.
        """
        crops_with_label = self.paper_crop and self.geometry.region_size is not None
        keys = ["image", "label"] if with_label or crops_with_label else ["image"]
        kept = ["image", "label"] if with_label else ["image"]
        steps: list[mt.Transform] = [
            RequireKeys(tuple(keys)),
            LoadVolumed(keys),
            mt.EnsureChannelFirstd(keys),
            mt.Orientationd(keys, axcodes="RAS", labels=None),
        ]
        if "label" in keys:
            steps.append(mt.Lambdad("label", LabelMap(self.facts.target.label_map), track_meta=True))
        steps += [self._intensity(), *self._spatial(keys, self._region_crop(keys, with_label, training))]
        steps.append(mt.EnsureTyped(kept, dtype=[torch.float32, torch.uint8][: len(kept)], track_meta=not training))
        return mt.Compose([*steps, mt.SelectItemsd([*kept, "id"])])

    def augmentation(self, with_label: bool = True, views: Sequence[str] | str = PLAIN) -> mt.Compose:
        """A random patch with horizontal flip, jitter (image only) and in-plane rotation (nearest for the label).

        views: with any but "plain" the sample has its `crop_start`, `is_flipped` and `rotation_radians` besides; with
        "strong" also `strong`, the image with strong changes of intensity. `image` and `label` are always the same.
        """
        asked = checked_views(views)
        is_recorded = any(view != "plain" for view in asked)
        keys = ["image", "label"] if with_label else ["image"]
        modes, types = ["bilinear", "nearest"][: len(keys)], [torch.float32, torch.uint8][: len(keys)]
        crop = RecordedCropd if is_recorded else mt.RandSpatialCropd
        flip = RecordedFlipd if is_recorded else mt.RandFlipd
        rotation = RecordedRotationd if is_recorded else RandRotateInPlaned
        steps: list[mt.Transform] = [
            crop(keys, self.geometry.patch_size, random_size=False),
            flip(keys, spatial_axis=FLIPPED_AXIS, prob=self.flip_probability),
            mt.EnsureTyped(keys, dtype=types, track_meta=False),  # what follows is faster on plain tensors
            RandJitterd("image", self.jitter),
            rotation(keys, modes, self.rotation_degrees, prob=0.5),
        ]
        if "strong" in asked:
            steps.append(RandStrongView(self.strong))  # last: the seeds of the others stay what they are
        return mt.Compose(steps)

    def _intensity(self) -> mt.Transform:
        if self.facts.window is not None:
            low, high = self.facts.window
            return mt.ScaleIntensityRanged("image", low, high, BACKGROUND, 1.0, clip=True)
        return mt.ScaleIntensityRangePercentilesd("image", 0.5, 99.5, BACKGROUND, 1.0, clip=True)

    def _region_crop(self, keys: list[str], with_label: bool, training: bool) -> mt.Transform | None:
        """The crop of the slices to the region; None for whole slices."""
        size = self.geometry.region_size
        if size is None:
            return None
        if self.is_centred:
            return mt.CenterSpatialCropd(keys, (*size, -1))
        if self.paper_crop:
            around = LabelRegion(size, PAPER_SLICE_MARGIN)
            return mt.CropForegroundd(keys, "label", select_fn=around, allow_smaller=True)
        if not training:
            return None
        if with_label:
            return mt.CropForegroundd(keys, "label", select_fn=LabelRegion(size), allow_smaller=True)
        return mt.CropForegroundd(keys, "image", select_fn=BodyRegion(size), allow_smaller=True)

    def _spatial(self, keys: list[str], crop: mt.Transform | None) -> list[mt.Transform]:
        size = self.geometry
        steps: list[mt.Transform] = []
        if size.slice_size is not None:
            # "nearest" would move the label by up to half a voxel against the image
            modes = ["bilinear", "nearest-exact"][: len(keys)]
            steps.append(mt.Resized(keys, (*size.slice_size, -1), mode=modes))
        if crop is not None:
            steps.append(crop)
        steps.append(mt.SpatialPadd("image", size.patch_size, value=BACKGROUND))
        if "label" in keys:
            steps.append(mt.SpatialPadd("label", size.patch_size))
        return steps


@dataclass(frozen=True)
class RequireKeys(mt.Transform):
    """Passes a case on if it has a file for each of `keys`; DataError otherwise."""

    keys: tuple[str, ...]

    def __call__(self, data: Mapping[str, Any]) -> Mapping[str, Any]:
        missing = [key for key in self.keys if key not in data]
        if missing:
            raise DataError(
                f"{data.get('image', data.get('id'))}: has no {missing[0]}. Training, validation and test need one, "
                "and so does every case with paper_crop: add it, or leave paper_crop out."
            )
        return data


@dataclass(frozen=True)
class LabelMap:
    """Maps the ids of a label file to classes; ids that are not named become background."""

    classes: Mapping[int, int]

    def __call__(self, label: Tensor) -> Tensor:
        mapped = torch.zeros_like(label, dtype=torch.uint8)
        for source, target in self.classes.items():
            mapped[label == source] = target
        return mapped
