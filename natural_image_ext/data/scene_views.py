"""From images and masks to batches: the same crop of both, weak and strong views, drawn by seed."""

from abc import ABC, abstractmethod
from collections.abc import Sequence, Sized
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset
from torchvision import tv_tensors
from torchvision.transforms import v2

from medssl.core.errors import ConfigError
from medssl.data.mixing import UNLABELLED_SEED
from medssl.data.sampling import Draw, EpochSampler, loader_of, share_of_process
from natural_image_ext.data.scene_splits import SceneSplit
from natural_image_ext.data.scenes import VOID, Scenes, read_mask
from natural_image_ext.data.sources import read_picture
from natural_image_ext.data.views import StepDraws, StepSampler

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet, whose weights encoders begin with
StrongKind = Literal["colour", "augseg"]


@dataclass(frozen=True)
class SceneViews:
    """The augmentations. size: of the longer side before anything else, None to keep images as they are.

    cropped: scaled by 0.5 to 2, flipped, cut to `crop` pixels a side, image and mask alike. strong: of the cropped
    image, "colour" jitters colours, greys and blurs, "augseg" does up to three of nine things with any strength.
    """

    crop: int
    size: int | None = None
    strong: StrongKind = "colour"

    def sized(self) -> v2.Transform:
        """(Image, Mask) to the size they are worked on."""
        if self.size is None:
            return v2.Identity()
        return v2.Resize(None, max_size=self.size, antialias=True)

    def cropped(self) -> v2.Transform:
        fill = {tv_tensors.Image: 124, tv_tensors.Mask: VOID}
        cut = v2.RandomCrop(self.crop, pad_if_needed=True, fill=fill)
        return v2.Compose([RandomScale(0.5, 2.0), v2.RandomHorizontalFlip(), cut])

    def stronger(self) -> v2.Transform:
        if self.strong == "augseg":
            return UpToThree(ALL_CHANGES)
        jitter = v2.RandomApply([v2.ColorJitter(0.5, 0.5, 0.5, 0.25)], p=0.8)
        blur = v2.RandomApply([v2.GaussianBlur(5, (0.1, 2.0))], p=0.5)
        return v2.Compose([jitter, v2.RandomGrayscale(0.2), blur])


def normalised(image: Tensor) -> Tensor:
    """(3, H, W) uint8 to floats, as encoders take them."""
    return v2.functional.normalize(v2.functional.to_dtype(image, torch.float32, scale=True), MEAN, STD)


def read_scene(scenes: Scenes, place: int, num_classes: int, void: int) -> tuple[tv_tensors.Image, tv_tensors.Mask]:
    """Image (3, H, W) uint8 and mask (H, W), 255 everywhere where there is none."""
    image, path = read_picture(scenes.images[place]), scenes.masks[place]
    if path is None:
        return tv_tensors.Image(image), tv_tensors.Mask(torch.full(image.shape[1:], VOID, dtype=torch.uint8))
    mask = read_mask(path, num_classes, void)
    return tv_tensors.Image(image), tv_tensors.Mask(torch.from_numpy(np.ascontiguousarray(mask)))


def centre_of(image: Tensor, mask: Tensor, crop_to: int | None) -> tuple[Tensor, Tensor]:
    """At most `crop_to` pixels a side from the centre of both; None for all of them."""
    if crop_to is None:
        return image, mask
    return v2.CenterCrop([min(crop_to, length) for length in image.shape[-2:]])(image, mask)


class SemiSupervisedImages(Dataset, ABC):
    """Whole batches: `image`, `label`, `id` of labelled images; `weak`, `strong` views of unlabelled ones.

    `valid` (B, H, W): which pixels of unlabelled ones are image, not padding.
    """

    labelled: Sized
    unlabelled: Sized

    def __getitem__(self, draws: StepDraws) -> dict[str, Any]:
        with torch.random.fork_rng(devices=[]):
            shown = [self.shown(draw) for draw in draws.labelled]
            hidden = [self.hidden(draw) for draw in draws.unlabelled]
        return {
            "image": torch.stack([image for image, _, _ in shown]),
            "label": torch.stack([mask.long() for _, mask, _ in shown]),
            "weak": torch.stack([weak for weak, _, _ in hidden]),
            "strong": torch.stack([strong for _, strong, _ in hidden]),
            "valid": torch.stack([valid for _, _, valid in hidden]),
            "id": [name for _, _, name in shown],
        }

    @abstractmethod
    def shown(self, draw: Draw) -> tuple[Tensor, Tensor, str]:
        """Image and mask of a labelled draw, augmented by the draw's own chance, and the name of what was drawn."""

    @abstractmethod
    def hidden(self, draw: Draw) -> tuple[Tensor, Tensor, Tensor]:
        """Weak and strong view of an unlabelled draw, and which of their pixels are image, not padding."""


class SemiSupervisedScenes(SemiSupervisedImages):
    """Batches of the scenes of a split."""

    def __init__(self, split: SceneSplit, views: SceneViews, num_classes: int, void: int = VOID) -> None:
        if not len(split.unlabelled):
            raise ConfigError("the split has no unlabelled images. Ask for fewer labelled ones.")
        self.labelled: Scenes = split.labelled
        self.unlabelled: Scenes = split.unlabelled
        self.num_classes, self.void = num_classes, void
        self.sized, self.cropped, self.stronger = views.sized(), views.cropped(), views.stronger()

    def shown(self, draw: Draw) -> tuple[Tensor, Tensor, str]:
        torch.random.default_generator.manual_seed(draw.seed)
        image, mask = self.cropped(*self.sized(*read_scene(self.labelled, draw.case, self.num_classes, self.void)))
        return normalised(image), mask, self.labelled.ids[draw.case]

    def hidden(self, draw: Draw) -> tuple[Tensor, Tensor, Tensor]:
        image = read_picture(self.unlabelled.images[draw.case])
        whole = tv_tensors.Mask(torch.zeros(image.shape[1:], dtype=torch.uint8))  # its mask, if any, is not looked at
        torch.random.default_generator.manual_seed(draw.seed)
        weak, inside = self.cropped(*self.sized(tv_tensors.Image(image), whole))
        return normalised(weak), normalised(self.stronger(weak)), inside != VOID


def make_scene_loader(
    dataset: SemiSupervisedImages, batch_size: int, steps: int, seed: int = 0, num_workers: int = 0
) -> DataLoader:
    """`steps` batches an epoch of `batch_size` labelled and as many unlabelled images, those of all processes."""
    own, rank, world_size = share_of_process(batch_size, "batch_size")
    labelled = EpochSampler(len(dataset.labelled), own, steps, seed, rank, world_size)
    unlabelled = EpochSampler(len(dataset.unlabelled), own, steps, seed + UNLABELLED_SEED, rank, world_size)
    return loader_of(dataset, StepSampler(labelled, unlabelled, steps), None, num_workers)


def steps_of_epoch(split: SceneSplit, batch_size: int) -> int:
    """Batches that show every unlabelled scene about once."""
    return max(1, len(split.unlabelled) // batch_size)


class LabelledScenes(Dataset):
    """Single scenes for evaluation: `image` normalised, `label`, at the size they are worked on."""

    def __init__(self, scenes: Scenes, size: int | None, num_classes: int, void: int = VOID) -> None:
        self.scenes, self.num_classes, self.void = scenes, num_classes, void
        self.sized = SceneViews(1, size).sized()

    def __len__(self) -> int:
        return len(self.scenes)

    def __getitem__(self, place: int) -> dict[str, Any]:
        image, mask = self.sized(*read_scene(self.scenes, place, self.num_classes, self.void))
        return {"image": normalised(image), "label": mask.long(), "id": self.scenes.ids[place]}


class RandomScale(v2.Transform):
    """Image and mask larger or smaller by one factor; nearest: which of a mask's pixels is the nearest."""

    def __init__(self, least: float, most: float, nearest: v2.InterpolationMode = v2.InterpolationMode.NEAREST) -> None:
        super().__init__()
        self.least, self.most, self.nearest = least, most, nearest

    def forward(self, *inputs: Any) -> Any:
        factor = self.least + (self.most - self.least) * torch.rand(()).item()
        size = [max(1, round(factor * side)) for side in inputs[0].shape[-2:]]
        return v2.functional.resize(inputs[0], size, antialias=True), v2.functional.resize(
            inputs[1], size, interpolation=self.nearest
        )


class UpToThree(v2.Transform):
    """AugSeg's strong view: one to three different `changes`, each with a strength drawn evenly."""

    def __init__(self, changes: Sequence[tuple[float, float, Any]]) -> None:
        super().__init__()
        self.changes = changes

    def forward(self, *inputs: Any) -> Any:
        image = inputs[0]
        number = int(torch.randint(1, 4, ()))
        for place in torch.randperm(len(self.changes))[:number].tolist():
            least, most, change = self.changes[place]
            image = change(image, least + (most - least) * torch.rand(()).item())
        return image


_COLOUR_CHANGES: list[tuple[float, float, Any]] = [
    (0.5, 1.5, v2.functional.adjust_saturation),
    (-0.25, 0.25, v2.functional.adjust_hue),
]
# least and most strength of what may be done to an image of 8 bits
ALL_CHANGES: list[tuple[float, float, Any]] = [
    (0.0, 1.0, lambda image, _: image),
    (0.0, 1.0, lambda image, _: v2.functional.autocontrast(image)),
    (0.0, 1.0, lambda image, _: v2.functional.equalize(image)),
    (0.1, 2.0, lambda image, s: v2.functional.gaussian_blur(image, [5, 5], [s, s])),
    (0.5, 1.5, v2.functional.adjust_contrast),
    (0.5, 1.5, v2.functional.adjust_brightness),
    *_COLOUR_CHANGES,
    (4.0, 8.0, lambda image, s: v2.functional.posterize(image, int(s))),
]
GREY_CHANGES = [change for change in ALL_CHANGES if change not in _COLOUR_CHANGES]
