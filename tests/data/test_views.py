"""Views of a patch: plain ones are what they always were, whatever else is asked for."""

import pytest
import torch
from monai import transforms as mt

from medssl.core.errors import ConfigError
from medssl.data.datasets import DATASETS
from medssl.data.jitter import RandJitterd
from medssl.data.pipeline import Pipeline
from medssl.data.rotation import RandRotateInPlaned
from medssl.data.strong_view import StrongChanges
from medssl.data.views import VIEWS, checked_views
from medssl.methods import facts

PATCH = (16, 12, 4)
PIPELINE = Pipeline(DATASETS["phantom"], patch_size=PATCH)
GEOMETRY = {"crop_start", "is_flipped", "rotation_radians"}


def scan(with_label: bool = True) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    image = torch.rand(1, 24, 20, 8, generator=generator) * 2 - 1
    return {"image": image, "id": "a"} | ({"label": (image > 0).to(torch.uint8)} if with_label else {})


def augmentation_of_old_runs() -> mt.Compose:
    """As it was before there were views."""
    keys = ["image", "label"]
    return mt.Compose(
        [
            mt.RandSpatialCropd(keys, PATCH, random_size=False),
            mt.RandFlipd(keys, spatial_axis=0, prob=0.5),
            mt.EnsureTyped(keys, dtype=[torch.float32, torch.uint8], track_meta=False),
            RandJitterd("image", 0.4),
            RandRotateInPlaned(keys, ["bilinear", "nearest"], 10.0, prob=0.5),
        ]
    )


@pytest.mark.parametrize("views", ["plain", "weak", "strong", ("weak", "strong")])
def test_image_and_label_are_those_of_old_runs_whatever_views_are_asked_for(views):
    new, old = PIPELINE.augmentation(views=views), augmentation_of_old_runs()
    for seed in range(16):
        found, expected = (made.set_random_state(seed=seed)(scan()) for made in (new, old))
        assert torch.equal(found["image"], expected["image"]) and torch.equal(found["label"], expected["label"])


@pytest.mark.parametrize("with_label", [True, False])
def test_samples_have_the_keys_of_their_views(with_label):
    def keys(*views):
        return set(PIPELINE.augmentation(with_label, views)(scan(with_label))) - {"label"}

    assert keys("plain") == {"image", "id"}
    assert keys("weak") == {"image", "id"} | GEOMETRY
    assert keys("weak", "strong") == keys("strong") == {"image", "id", "strong"} | GEOMETRY


def test_strong_view_shows_the_same_place_as_the_weak_one():
    mild = Pipeline(DATASETS["phantom"], patch_size=PATCH, strong=StrongChanges(0.4, 0.4, 0.0, 0.0, 0.0, 0.0))
    for seed in range(8):
        sample = mild.augmentation(views="strong").set_random_state(seed=seed)(scan())
        both = torch.stack([sample["image"].flatten(), sample["strong"].flatten()])
        assert float(torch.corrcoef(both)[0, 1]) > 0.9999 and not torch.equal(sample["image"], sample["strong"])


def test_strengths_of_the_pipeline_reach_the_strong_view():
    still = Pipeline(DATASETS["phantom"], patch_size=PATCH, strong=StrongChanges(0, 0, 0, 0, 0, 0))
    sample = still.augmentation(views="strong").set_random_state(seed=1)(scan())
    torch.testing.assert_close(sample["strong"], sample["image"], atol=1e-5, rtol=0)


def test_unknown_view_is_refused_with_those_there_are():
    with pytest.raises(ConfigError, match=r"'stong' is unknown\. Choose from plain, weak, strong"):
        PIPELINE.augmentation(views=("weak", "stong"))


def test_one_view_may_be_given_by_its_name():
    assert checked_views("strong") == checked_views(["strong"]) == ("strong",)


def test_views_are_those_that_methods_may_ask_for():
    assert VIEWS == facts.VIEWS
