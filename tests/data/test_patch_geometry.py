"""What is kept of a patch's crop, flip and rotation; the same for other maps, and undone."""

import pytest
import torch

from medssl.data.datasets import DATASETS
from medssl.data.patch_geometry import moved_back, moved_like
from medssl.data.pipeline import Pipeline

SIZE, PATCH = (40, 36, 10), (24, 20, 6)
PIPELINE = Pipeline(DATASETS["phantom"], patch_size=PATCH, jitter=0)


def smooth_scan() -> torch.Tensor:
    grid = torch.meshgrid(*(torch.linspace(0, 3, side) for side in SIZE), indexing="ij")
    return (torch.sin(grid[0] + 2 * grid[1]) * torch.cos(grid[1] - grid[2]))[None]


SCAN = {"image": smooth_scan(), "label": (smooth_scan() > 0.2).to(torch.uint8), "id": "a"}


def patch_of(seed: int, pipeline: Pipeline = PIPELINE) -> dict[str, torch.Tensor]:
    return pipeline.augmentation(views="weak").set_random_state(seed=seed)(SCAN)


def cut(key: str, patch: dict[str, torch.Tensor]) -> torch.Tensor:
    """The part of the scan that the patch was made from, as a batch of one."""
    starts = patch["crop_start"].tolist()
    return SCAN[key][(slice(None), *(slice(a, a + side) for a, side in zip(starts, PATCH, strict=True)))][None]


def as_batch(*patches: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return torch.utils.data.default_collate(list(patches))


def test_recorded_geometry_makes_the_patch_from_the_scan():
    seen = set()
    for seed in range(30):
        patch = patch_of(seed)
        batch = as_batch(patch)
        torch.testing.assert_close(moved_like(cut("image", patch), batch), batch["image"], atol=1e-4, rtol=0)
        label = moved_like(cut("label", patch), batch, "nearest")
        assert label.dtype == torch.uint8 and float((label == batch["label"]).float().mean()) > 0.999
        seen.add((bool(patch["is_flipped"]), bool(patch["rotation_radians"])))
    assert len(seen) == 4, "with and without flip, with and without rotation"


def test_flip_is_undone_exactly():
    pipeline = Pipeline(DATASETS["phantom"], patch_size=PATCH, jitter=0, rotation_degrees=0, flip_probability=1)
    patches = [patch_of(seed, pipeline) for seed in range(3)]
    batch = as_batch(*patches)
    assert batch["is_flipped"].all() and not batch["rotation_radians"].any()
    assert torch.equal(moved_back(batch["label"], batch, "nearest"), torch.cat([cut("label", p) for p in patches]))


def test_rotation_is_undone_within_interpolation_away_from_the_border():
    patches = [patch_of(seed) for seed in range(12)]
    batch = as_batch(*patches)
    inner = (slice(None), slice(None), slice(4, -4), slice(4, -4))
    expected = torch.cat([cut("image", patch) for patch in patches])
    torch.testing.assert_close(moved_back(batch["image"], batch)[inner], expected[inner], atol=0.02, rtol=0)
    assert not torch.allclose(batch["image"][inner], expected[inner], atol=0.1)


def test_maps_of_several_classes_keep_their_gradient():
    batch = as_batch(*(patch_of(seed) for seed in range(4)))
    maps = torch.rand(4, 3, *PATCH, requires_grad=True)
    moved_back(maps, batch).sum().backward()
    assert maps.grad is not None and maps.grad.isfinite().all() and maps.grad.any()


@pytest.mark.parametrize(
    ("key", "shape", "dtype"),
    [
        ("crop_start", (2, 3), torch.long),
        ("is_flipped", (2,), torch.bool),
        ("rotation_radians", (2,), torch.float32),
    ],
)
def test_geometry_collates_as_small_tensors(key, shape, dtype):
    batch = as_batch(patch_of(0), patch_of(1))
    assert batch[key].shape == shape and batch[key].dtype == dtype
