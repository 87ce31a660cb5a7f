"""Bundles that were exported before the slices moved to medssl name them in natural_image_ext."""

import pytest
from monai.bundle import ConfigParser

import medssl.data
import medssl.inference
import natural_image_ext.data
import natural_image_ext.inference


@pytest.mark.parametrize("name", ["SemiSupervisedSlices", "SliceViews", "slices_at"])
def test_slices_are_found_by_their_old_names(name):
    assert getattr(natural_image_ext.data, name) is getattr(medssl.data, name)


def test_loader_of_scenes_is_that_of_all_images():
    assert natural_image_ext.data.make_scene_loader is medssl.data.make_image_loader


@pytest.mark.parametrize("name", ["SliceInferer", "export_slices"])
def test_inference_of_slices_is_found_by_its_old_names(name):
    assert getattr(natural_image_ext.inference, name) is getattr(medssl.inference, name)


def test_inferer_of_an_old_bundle_is_built():
    config = {"inferer": {"_target_": "natural_image_ext.inference.SliceInferer", "samples": 3, "slice_batch": 2}}
    inferer = ConfigParser(config).get_parsed_content("inferer")
    assert isinstance(inferer, medssl.inference.SliceInferer) and inferer.samples == 3
