"""Where a patch was cut and how it was turned, kept beside it; and the same turn for another map, or its undoing."""

from collections.abc import Hashable, Mapping
from typing import Any

import torch
from monai import transforms as mt
from torch import Tensor

from medssl.data.rotation import RandRotateInPlaned, rotated_in_plane

CROP_START, IS_FLIPPED, ROTATION = "crop_start", "is_flipped", "rotation_radians"
FLIPPED_AXIS = 0  # of the spatial ones: left and right


class RecordedCropd(mt.RandSpatialCropd):
    """RandSpatialCropd that keeps the crop's first voxel, on the grid of the prepared scan, as `crop_start` (3,)."""

    def __call__(self, data: Mapping[Hashable, Any], lazy: bool | None = None) -> dict[Hashable, Any]:
        cropped = super().__call__(data, lazy)
        slices = self.cropper._slices  # type: ignore[attr-defined]
        return {**cropped, CROP_START: torch.tensor([part.start for part in slices])}


class RecordedFlipd(mt.RandFlipd):
    """RandFlipd that keeps whether it flipped as `is_flipped`, a bool tensor."""

    def __call__(self, data: Mapping[Hashable, Any], lazy: bool | None = None) -> dict[Hashable, Any]:
        flipped = super().__call__(data, lazy)
        return {**flipped, IS_FLIPPED: torch.tensor(bool(self._do_transform))}


class RecordedRotationd(RandRotateInPlaned):
    """RandRotateInPlaned that keeps its angle as `rotation_radians`, a float tensor, 0 where it did not rotate."""

    def __call__(self, data: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
        turned = super().__call__(data)
        return {**turned, ROTATION: torch.tensor(self.radians if self._do_transform else 0.0)}


def moved_like(maps: Tensor, batch: Mapping[str, Any], mode: str = "bilinear") -> Tensor:
    """Maps (B, C, H, W, D) flipped and then rotated as the patches of `batch` were.

    mode: "bilinear" (of floats) or "nearest" (of labels), as in `rotated_in_plane`.
    """
    return _rotated(_flipped(maps, batch[IS_FLIPPED]), batch[ROTATION], mode)


def moved_back(maps: Tensor, batch: Mapping[str, Any], mode: str = "bilinear") -> Tensor:
    """Maps (B, C, H, W, D) on the patches of `batch` as they would lie on the patches before flip and rotation.

    A flip is undone exactly, a rotation within what interpolation loses; corners that it turned out of the patch have
    the value at the border.
    """
    return _flipped(_rotated(maps, -batch[ROTATION], mode), batch[IS_FLIPPED])


def _flipped(maps: Tensor, is_flipped: Tensor) -> Tensor:
    chosen = is_flipped.to(maps.device)[:, None, None, None, None]
    return torch.where(chosen, maps.flip(2 + FLIPPED_AXIS), maps)


def _rotated(maps: Tensor, radians: Tensor, mode: str) -> Tensor:
    volumes = [
        rotated_in_plane(volume, angle, mode) if angle else volume
        for volume, angle in zip(maps, radians.tolist(), strict=True)
    ]
    return torch.stack(volumes)
