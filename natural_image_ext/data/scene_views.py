"""From images and masks to batches: the same crop of both, weak and strong views, drawn by seed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset
from torchvision import tv_tensors
from torchvision.transforms import v2

from medssl.core.errors import ConfigError
from medssl.data.image_batches import SemiSupervisedImages
from medssl.data.sampling import Draw
from medssl.data.slice_views import StrongKind
from natural_image_ext.data.scene_splits import SceneSplit
from natural_image_ext.data.scenes import VOID, Scenes, read_mask
from natural_image_ext.data.sources import read_picture

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet, whose weights encoders begin with


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


class SemiSupervisedScenes(SemiSupervisedImages):
    """Batches of the scenes of a split."""

    def __init__(self, split: SceneSplit, views: SceneViews, num_classes: int, void: int = VOID) -> None:
        if not len(split.unlabelled):
            raise ConfigError("the split has no unlabelled images. Ask for fewer labelled ones.")
        self.labelled: Scenes = split.labelled
        self.unlabelled: Scenes = split.unlabelled
        self.num_classes, self.void = num_classes, void
        self.sized, self.cropped, self.stronger = views.sized(), views.cropped(), views.stronger()

    def labelled_sample(self, draw: Draw) -> tuple[Tensor, Tensor, str]:
        torch.random.default_generator.manual_seed(draw.seed)
        image, mask = self.cropped(*self.sized(*read_scene(self.labelled, draw.case, self.num_classes, self.void)))
        return normalised(image), mask, self.labelled.ids[draw.case]

    def unlabelled_views(self, draw: Draw) -> tuple[Tensor, Tensor, Tensor]:
        image = read_picture(self.unlabelled.images[draw.case])
        whole = tv_tensors.Mask(torch.zeros(image.shape[1:], dtype=torch.uint8))  # its mask, if any, is not looked at
        torch.random.default_generator.manual_seed(draw.seed)
        weak, inside = self.cropped(*self.sized(tv_tensors.Image(image), whole))
        return normalised(weak), normalised(self.stronger(weak)), inside != VOID


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
    """Image and mask larger or smaller by one factor."""

    def __init__(self, least: float, most: float) -> None:
        super().__init__()
        self.least, self.most = least, most

    def forward(self, *inputs: Any) -> Any:
        image, mask = inputs
        factor = self.least + (self.most - self.least) * torch.rand(()).item()
        size = [max(1, round(factor * side)) for side in image.shape[-2:]]
        nearest = v2.InterpolationMode.NEAREST
        return v2.functional.resize(image, size, antialias=True), v2.functional.resize(mask, size, nearest)


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


# least and most strength of what may be done to an image of 8 bits
ALL_CHANGES: list[tuple[float, float, Any]] = [
    (0.0, 1.0, lambda image, _: image),
    (0.0, 1.0, lambda image, _: v2.functional.autocontrast(image)),
    (0.0, 1.0, lambda image, _: v2.functional.equalize(image)),
    (0.1, 2.0, lambda image, s: v2.functional.gaussian_blur(image, [5, 5], [s, s])),
    (0.5, 1.5, v2.functional.adjust_contrast),
    (0.5, 1.5, v2.functional.adjust_brightness),
    (0.5, 1.5, v2.functional.adjust_saturation),
    (-0.25, 0.25, v2.functional.adjust_hue),
    (4.0, 8.0, lambda image, s: v2.functional.posterize(image, int(s))),
]
