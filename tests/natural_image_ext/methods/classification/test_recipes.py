"""The thesis' table of settings, and what each method's name stands for."""

import pytest

from medssl.core.errors import ConfigError
from natural_image_ext.methods.classification import (
    METHODS,
    FixMatch,
    MixMatch,
    NPMatch,
    Supervised,
    build_method,
    recipe,
)
from natural_image_ext.networks import build_classifier


@pytest.mark.parametrize(
    ("dataset", "backbone", "weight_decay", "batch", "ratio", "confidence", "uncertainty", "rate"),
    [
        ("cifar10", "wrn_28_2", 5e-4, 64, 7, 0.95, 0.4, 0.03),
        ("cifar100", "wrn_28_8", 1e-3, 64, 7, 0.95, 0.4, 0.03),
        ("stl10", "wrn_37_2", 5e-4, 64, 7, 0.95, 0.4, 0.03),
        ("imagenet", "resnet50", 1e-4, 256, 1, 0.7, 1.2, 0.05),
    ],
)
def test_settings_of_np_match_are_those_of_the_thesis(
    dataset, backbone, weight_decay, batch, ratio, confidence, uncertainty, rate
):
    found = recipe("np_match", dataset)
    assert (found.backbone, found.weight_decay, found.batch_size, found.ratio) == (backbone, weight_decay, batch, ratio)
    assert (found.confidence, found.uncertainty, found.learning_rate) == (confidence, uncertainty, rate)
    assert found.curriculum and found.head == "np" and found.unlabelled_weight == 1.0


@pytest.mark.parametrize(("dataset", "hidden"), [("cifar10", 32), ("cifar100", 128), ("stl10", 64), ("imagenet", 256)])
def test_hidden_units_are_a_quarter_of_the_channels_and_256_of_resnet50(dataset, hidden):
    found = recipe("np_match", dataset)
    assert build_classifier(found.backbone, 10, hidden=found.hidden).head.hidden == hidden


def test_methods_differ_in_what_they_are_known_for():
    assert recipe("fixmatch", "cifar10").uncertainty is None and not recipe("fixmatch", "cifar10").curriculum
    assert recipe("flexmatch", "cifar10").curriculum and recipe("flexmatch", "cifar10").method is FixMatch
    assert recipe("uda", "cifar10").confidence == 0.8
    assert recipe("ups", "cifar10").dropout > 0 and recipe("ups", "imagenet").uncertainty == 0.05
    mixmatch = recipe("mixmatch", "cifar10")
    assert (mixmatch.ratio, mixmatch.two_weak, mixmatch.unlabelled_weight) == (1, True, 100.0)
    assert recipe("np_match", "folder", "kl").title == "NP-Match, KL"


@pytest.mark.parametrize("name", METHODS)
def test_every_method_is_built_with_the_keys_of_the_bundle(name):
    found = recipe(name, "cifar10")
    network = build_classifier("wrn_10_1", 4, found.head, found.dropout)
    method = build_method(found, network, 4, 50, 0.9, found.uncertainty, found.curriculum, ema_decay=0.5)
    assert type(method) is found.method and method.network is network
    if not isinstance(method, MixMatch | Supervised):
        assert method.selection.confidence == 0.9 and method.selection.uncertainty == found.uncertainty
        assert len(method.selection.last_labels) == (50 if found.curriculum else 0)
    if isinstance(method, NPMatch):
        assert method.divergence == "js" and method.divergence_weight == 0.01


def test_unknown_method_is_named():
    with pytest.raises(ConfigError, match=r"'np' is unknown\. Known: supervised, mixmatch"):
        recipe("np", "cifar10")


def test_flags_given_as_text_are_understood():
    found = recipe("np_match", "cifar10")
    method = build_method(found, build_classifier("wrn_10_1", 4), 4, 50, curriculum="false", align="false")
    assert not method.selection.has_curriculum and method.selection.align is False


def test_gradients_of_np_match_are_limited_as_in_the_released_code():
    assert recipe("np_match", "cifar10").max_grad_norm == recipe("np_match", "imagenet").max_grad_norm == 3.0
    assert recipe("fixmatch", "cifar10").max_grad_norm is None
