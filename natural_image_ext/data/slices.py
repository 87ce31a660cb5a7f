"""Slices of scans as images of three channels, and batches of them from the cases of a split."""

from collections.abc import Sequence

import torch
from monai.data import Dataset as CachedCases
from torch import Tensor
from torchvision import tv_tensors

from medssl.data.pipeline import Pipeline
from medssl.data.sampling import Draw, cache_cases
from medssl.data.split import Split
from natural_image_ext.data.scene_views import SemiSupervisedImages
from natural_image_ext.data.scenes import VOID
from natural_image_ext.data.slice_views import SliceViews


def slices_at(scan: Tensor, places: Sequence[int] | Tensor) -> Tensor:
    """The slices of a scan (1, H, W, D) at `places` as images (N, 3, H, W): the one below, itself, the one above.

    At an end of the scan the slice itself takes the place of the missing one.
    """
    around = torch.as_tensor(places).unsqueeze(1) + torch.arange(-1, 2)
    inside = around.clamp(0, scan.shape[-1] - 1).to(scan.device)
    return scan[0][..., inside].movedim((-2, -1), (0, 1))


class SemiSupervisedSlices(SemiSupervisedImages):
    """Batches of slices: a case is drawn, then a slice of it. A label of an unlabelled case is never opened.

    structure_share: of the labelled draws those from slices with a structure; the rest are from any slice. Where the
    split has no unlabelled case, the labelled ones stand in for them, without their labels.
    """

    def __init__(
        self,
        split: Split,
        pipeline: Pipeline,
        views: SliceViews,
        structure_share: float = 0.5,
        cache: str = "memory",
        cache_dir: str = "",
    ) -> None:
        known, hidden = split.role("labelled"), split.role("unlabelled") or split.role("labelled")
        with_label, without = (pipeline.preprocessing(has_label, training=True) for has_label in (True, False))
        self.labelled: CachedCases = cache_cases(known, with_label, cache, cache_dir)
        self.unlabelled: CachedCases = cache_cases(hidden, without, cache, cache_dir)
        self.structure_share = structure_share
        self.cropped, self.stronger = views.cropped(), views.stronger()

    def shown(self, draw: Draw) -> tuple[Tensor, Tensor, str]:
        torch.random.default_generator.manual_seed(draw.seed)
        case = self.labelled[draw.case]
        place = self._labelled_place(case["label"])
        image, mask = slices_at(case["image"], [place])[0], case["label"][0, ..., place]
        image, mask = self.cropped(tv_tensors.Image(image), tv_tensors.Mask(mask))
        return image.as_subclass(Tensor), mask.as_subclass(Tensor), f"{case['id']}, slice {place}"

    def hidden(self, draw: Draw) -> tuple[Tensor, Tensor, Tensor]:
        torch.random.default_generator.manual_seed(draw.seed)
        scan = self.unlabelled[draw.case]["image"]
        image = slices_at(scan, [int(torch.randint(scan.shape[-1], ()))])[0]
        whole = tv_tensors.Mask(torch.zeros(image.shape[1:], dtype=torch.uint8))
        weak, inside = self.cropped(tv_tensors.Image(image), whole)
        return weak.as_subclass(Tensor), self.stronger(weak).as_subclass(Tensor), inside.as_subclass(Tensor) != VOID

    def _labelled_place(self, label: Tensor) -> int:
        """A slice of the label (1, H, W, D), by chance; more often than not one that has a structure."""
        with_structure = label.flatten(0, 2).any(0).nonzero().squeeze(1)
        if len(with_structure) and torch.rand(()) < self.structure_share:
            return int(with_structure[torch.randint(len(with_structure), ())])
        return int(torch.randint(label.shape[-1], ()))
