"""DeepLabV3+ taken apart: shapes, counts, where dropout lies, weights from a file."""

import pytest
import torch
from torch import nn
from torchvision.models import resnet18

from medssl.core.errors import CheckpointError, ConfigError
from medssl.engine import save_tensors
from natural_image_ext.networks import NPSegHead, build_segmentation
from natural_image_ext.networks.segmentation import load_encoder


@pytest.mark.parametrize("head", ["plain", "dropout", "np"])
@pytest.mark.parametrize("size", [(32, 48), (33, 41)])
def test_logits_have_the_size_of_the_image(head, size):
    network = build_segmentation("resnet18", 5, head, channels=16, bank_size=8).eval()
    images = torch.randn(2, 3, *size)
    assert network(images).shape == (2, 5, *size)
    assert network.features(images).shape[1] == network.channels == 16 + 256


def test_full_size_network_is_the_thesis_with_maps_of_512_channels():
    network = build_segmentation("resnet50", 21)
    assert network.channels == 512 and isinstance(network.head, NPSegHead)
    assert sum(p.numel() for p in network.head.parameters()) == 1_944_533
    assert sum(p.numel() for p in network.encoder.parameters()) == 23_508_032


def test_detail_of_48_channels_gives_the_head_of_augseg():
    head = build_segmentation("resnet18", 21, detail=48).head
    assert sum(p.numel() for p in head.parameters()) == 1_458_645


def test_plain_head_is_as_wide_and_as_deep_as_the_neural_process():
    plain, process = (build_segmentation("resnet18", 21, head, channels=16, detail=8).head for head in ("plain", "np"))
    shapes = [[tuple(m.weight.shape) for m in head.modules() if isinstance(m, nn.Conv2d)] for head in (plain, process)]
    assert shapes[0] == [(16, 24, 3, 3), (16, 16, 3, 3), (21, 16, 1, 1)]
    assert shapes[1][-3:] == [(16, 24 + 64, 3, 3), *shapes[0][1:]]


def test_neural_process_gives_logarithms_of_probabilities():
    network = build_segmentation("resnet18", 4, channels=8, bank_size=8).eval()
    probs = network(torch.randn(1, 3, 16, 16)).exp()
    assert torch.allclose(probs[..., ::5, ::5].sum(1), torch.ones(1), atol=1e-5)  # where maps of 4x4 have their values


def test_dropout_lies_after_every_activation_of_the_decoder_and_nowhere_else():
    network = build_segmentation("resnet18", 4, "dropout", dropout=0.3, channels=8)
    activations = [m for part in (network.decoder, network.head) for m in part.modules() if isinstance(m, nn.ReLU)]
    dropouts = [m for m in network.modules() if isinstance(m, nn.Dropout2d)]
    assert len(dropouts) == len(activations) == 10 and {m.p for m in dropouts} == {0.3}
    assert not any(isinstance(m, nn.Dropout2d) for m in network.encoder.modules())
    plain = build_segmentation("resnet18", 4, "plain", channels=8)
    assert not any(isinstance(m, nn.Dropout | nn.Dropout2d) and m.p > 0 for m in plain.modules())


def test_encoder_weights_come_from_a_file(tmp_path):
    first, second = (build_segmentation("resnet18", 4, "plain", channels=8) for _ in range(2))
    weights = {**first.encoder.state_dict(), "fc.weight": torch.zeros(3)}
    save_tensors(weights, tmp_path / "resnet18.pt")
    load_encoder(second.encoder, tmp_path / "resnet18.pt")
    assert torch.equal(first.encoder.conv1.weight, second.encoder.conv1.weight)
    third = build_segmentation("resnet18", 4, "plain", channels=8, encoder_weights=str(tmp_path / "resnet18.pt"))
    assert torch.equal(third.encoder.conv1.weight, first.encoder.conv1.weight)
    assert third.arguments["encoder_weights"] is None, "an exported network needs no file beside its own"
    with pytest.raises(CheckpointError, match=r"resnet18\.pt: lacks \d+ of the encoder's weights"):
        build_segmentation("resnet34", 4, "plain", channels=8, encoder_weights=str(tmp_path / "resnet18.pt"))


def test_encoder_weights_of_old_files_without_counts_of_batches_are_taken(tmp_path):
    weights = {name: value for name, value in resnet18().state_dict().items() if "num_batches_tracked" not in name}
    save_tensors(weights, tmp_path / "old.pth")
    encoder = build_segmentation("resnet18", 4, "plain", channels=8, encoder_weights=str(tmp_path / "old.pth")).encoder
    assert all(torch.equal(encoder.state_dict()[name], weights[name]) for name in weights if not name.startswith("fc."))
    del weights["layer1.0.bn1.running_mean"]
    save_tensors(weights, tmp_path / "broken.pth")
    with pytest.raises(CheckpointError, match=r"lacks 1 of the .* first 'layer1\.0\.bn1\.running_mean'"):
        load_encoder(encoder, tmp_path / "broken.pth")


def test_unknown_head_is_named():
    with pytest.raises(ConfigError, match="head 'linear' is unknown"):
        build_segmentation("resnet18", 4, "linear")


@pytest.mark.parametrize("error", [OSError("Cannot reach the hub.\nTry again."), ValueError("Cannot reach the hub.")])
def test_imagenet_weights_that_cannot_be_fetched_are_named_with_the_way_on(monkeypatch, error):
    def fails(name, weights, output_stride):
        assert weights == "imagenet"
        raise error

    monkeypatch.setattr("natural_image_ext.networks.encoders.get_encoder", fails)
    with pytest.raises(ConfigError) as raised:
        build_segmentation("resnet18", 4, "plain", channels=8, encoder_weights="imagenet")
    text = str(raised.value)
    assert "the weights of resnet18 cannot be fetched (Cannot reach the hub.)" in text
    assert "--encoder_weights resnet50.pth" in text and "--encoder_weights null" in text


def test_encoder_that_has_no_imagenet_weights_is_named():
    with pytest.raises(ConfigError, match=r"encoder_weights imagenet: .*--encoder_weights null"):
        build_segmentation("resnet99", 4, "plain", channels=8, encoder_weights="imagenet")
