"""Numbers that no prediction of pictures can have are refused by name, before anything is computed."""

import pytest
from torch import nn

from medssl.core.errors import ConfigError
from natural_image_ext.inference import PicturePredictor, SampledInferer, SampledSceneInferer, scene_inferer


@pytest.mark.parametrize("samples", [0, -5])
def test_classifier_needs_a_sample(samples):
    with pytest.raises(ConfigError, match=f"samples {samples}: expected at least 1"):
        SampledInferer(samples)


def test_scenes_may_have_no_sample_but_not_fewer():
    assert SampledSceneInferer(0).samples == 0
    with pytest.raises(ConfigError, match="samples -1: expected at least 0"):
        SampledSceneInferer(-1)


@pytest.mark.parametrize(
    ("given", "text"),
    [({"crop": 0}, "crop 0: expected at least 1"), ({"evaluation": "slidin"}, "Did you mean 'sliding'")],
)
def test_windows_of_scenes_are_checked(given, text):
    with pytest.raises(ConfigError, match=text):
        scene_inferer(**given)


def test_pictures_at_once_are_at_least_one():
    with pytest.raises(ConfigError, match="test_batch 0: expected at least 1"):
        PicturePredictor(nn.Identity(), ("a", "b"), 16, batch_size=0)
