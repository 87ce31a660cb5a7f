"""A network's definition as JSON: what it holds builds the same network, what JSON cannot hold is refused by name."""

import json

import numpy as np
import pytest
import torch
from monai.bundle import ConfigParser
from monai.networks.nets import VNet
from monai.utils import UpsampleMode
from torch import nn

from medssl.core.errors import ConfigError
from medssl.networks import MCDropoutUNet3D, network_config_of
from medssl.networks.network_config import config_of_built


@pytest.mark.parametrize("target", ["VNet", "monai.networks.nets.VNet"])
def test_definition_builds_the_same_network_after_json(target):
    given = {"_target_": target, "spatial_dims": 3, "out_channels": np.int64(2), "dropout_prob_up": (0.5, 0.25)}
    config = json.loads(json.dumps(network_config_of({**given, "_desc_": "a note"})))
    assert config == {"_target_": target, "spatial_dims": 3, "out_channels": 2, "dropout_prob_up": [0.5, 0.25]}
    built = ConfigParser({"network_def": config}).get_parsed_content("network_def")
    assert isinstance(built, VNet) and built.up_tr256.dropout2.p == 0.25


def test_values_become_plain():
    given = {"_target_": "X", "mode": UpsampleMode.DECONV, "act": ("RELU", {"inplace": True}), "none": None}
    found = network_config_of(given)
    assert (found["mode"], found["act"], found["none"]) == ("deconv", ["RELU", {"inplace": True}], None)
    assert type(found["mode"]) is str


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (nn.LayerNorm, "norm is"),
        (torch.zeros(2), "norm is"),
        (float("nan"), "norm is nan"),
        ({"layer": [1, object()]}, "norm::layer::1 is"),
        ("$@facts.num_classes", r"norm is '\$@facts.num_classes'"),
    ],
)
def test_argument_that_json_cannot_hold_is_named(value, named):
    with pytest.raises(ConfigError, match=f"network_def: {named}"):
        network_config_of({"_target_": "VNet", "norm": value})


def test_definition_without_a_class_is_refused():
    with pytest.raises(ConfigError, match="_target_ is None"):
        network_config_of({"out_channels": 2})


def test_built_network_says_how_it_was_built_or_is_refused():
    config = config_of_built(MCDropoutUNet3D(1, 3, widths=(4, 8)))
    assert config["_target_"] == "medssl.networks.unet.MCDropoutUNet3D" and config["widths"] == [4, 8]
    with pytest.raises(ConfigError, match=r"VNet: how it was built is not known.*network_config"):
        config_of_built(VNet())
