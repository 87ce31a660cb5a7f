"""Slices of scans as images of three channels, and batches of them from the cases of a split."""

from collections.abc import Sequence

import torch
from monai.data import Dataset as CachedCases
from torch import Tensor

from medssl.data.image_batches import SemiSupervisedImages
from medssl.data.pipeline import Pipeline
from medssl.data.sampling import Draw, cache_cases
from medssl.data.slice_views import NO_LABEL, SliceViews
from medssl.data.split import Split


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
        labelled = split.role("labelled")
        unlabelled = split.role("unlabelled") or labelled
        with_label, without_label = (pipeline.preprocessing(has_label, training=True) for has_label in (True, False))
        self.labelled: CachedCases = cache_cases(labelled, with_label, cache, cache_dir)
        self.unlabelled: CachedCases = cache_cases(unlabelled, without_label, cache, cache_dir)
        self.structure_share = structure_share
        self.cropped, self.stronger = views.cropped(), views.stronger()

    def labelled_sample(self, draw: Draw) -> tuple[Tensor, Tensor, str]:
        torch.random.default_generator.manual_seed(draw.seed)
        case = self.labelled[draw.case]
        place = self._labelled_place(case["label"])
        image, mask = slices_at(case["image"], [place])[0], case["label"][0, ..., place]
        image, mask = self.cropped(image.as_subclass(Tensor), mask.as_subclass(Tensor))
        return image, mask, f"{case['id']}, slice {place}"

    def unlabelled_views(self, draw: Draw) -> tuple[Tensor, Tensor, Tensor]:
        torch.random.default_generator.manual_seed(draw.seed)
        scan = self.unlabelled[draw.case]["image"]
        image = slices_at(scan, [int(torch.randint(scan.shape[-1], ()))])[0].as_subclass(Tensor)
        weak, inside = self.cropped(image, torch.zeros(image.shape[1:], dtype=torch.uint8))
        return weak, self.stronger(weak), inside != NO_LABEL

    def _labelled_place(self, label: Tensor) -> int:
        """A slice of the label (1, H, W, D), by chance; more often than not one that has a structure."""
        with_structure = label.flatten(0, 2).any(0).nonzero().squeeze(1)
        if len(with_structure) and torch.rand(()) < self.structure_share:
            return int(with_structure[torch.randint(len(with_structure), ())])
        return int(torch.randint(label.shape[-1], ()))
