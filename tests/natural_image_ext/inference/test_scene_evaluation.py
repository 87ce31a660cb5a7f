"""mIoU, PAvPU and the table of images against plain counting; how often encoder and decoder run."""

import csv
import json
import math

import numpy as np
import pytest
import torch
from torch import nn

from medssl.errors import ConfigError
from natural_image_ext.data import open_scenes, read_mask
from natural_image_ext.inference import SampledSceneInferer, SceneEvaluation, ScenePredictor, scene_inferer
from natural_image_ext.inference.scene_evaluation import confusion_matrix, iou_of_classes
from natural_image_ext.networks import NPSegHead, SegmentationNetwork

CLASSES = ("ground", "red", "blue")


class Counted(nn.Module):
    """Calls of a module that changes nothing."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x


def by_colour():
    """Tells red from blue: logits are colours."""
    head = nn.Conv2d(3, 3, 1)
    with torch.no_grad():
        head.weight.copy_(torch.tensor([[0, 1.0, 0], [2, 0, 0], [0, 0, 2.0]]).reshape(3, 3, 1, 1))
        head.bias.zero_()
    return SegmentationNetwork(Counted(), Counted(), head, 3)


def test_metrics_equal_plain_counting(scene_dir, tmp_path):
    scenes = open_scenes("folder", scene_dir).train.take(range(4))
    predictor = ScenePredictor(by_colour(), CLASSES)
    metrics = SceneEvaluation(predictor, scenes, tmp_path, pavpu_window=16).run()
    inside, either = np.zeros(3), np.zeros(3)
    for place in range(4):
        from natural_image_ext.data import read_picture

        found = predictor(read_picture(scenes.images[place]), scenes.ids[place]).classes
        label = read_mask(scenes.masks[place], 3)
        for row in range(40):
            for column in range(48):
                if label[row, column] == 255:
                    continue
                for number in range(3):
                    is_label, is_found = label[row, column] == number, found[row, column] == number
                    inside[number] += is_label and is_found
                    either[number] += is_label or is_found
    assert metrics["miou"] == pytest.approx((inside / either).mean())
    assert list(metrics["classes"].values()) == pytest.approx((inside / either).tolist())
    rows = list(csv.DictReader((tmp_path / "per_case.csv").open()))
    assert [row["case"] for row in rows] == scenes.ids and metrics["miou"] > 0.4
    assert metrics["pavpu"] == pytest.approx(np.mean([float(row["pavpu"]) for row in rows]), abs=1e-6)
    assert json.loads((tmp_path / "metrics.json").read_text()) == metrics
    stored = np.load(tmp_path / "predictions" / "images__a_0.npz")
    assert stored["classes"].shape == (40, 48) and 0 <= stored["entropy"].max() <= math.log(3) + 1e-3


def test_confusion_leaves_pixels_without_label_out_and_absent_classes_have_no_iou():
    label, found = np.array([[0, 1, 255, 1]]), np.array([[0, 0, 1, 1]])
    confusion = confusion_matrix(found, label, 3)
    assert confusion.tolist() == [[1, 0, 0], [1, 1, 0], [0, 0, 0]]
    ious = iou_of_classes(confusion)
    assert ious[:2].tolist() == [0.5, 0.5] and np.isnan(ious[2])


@pytest.mark.parametrize(
    ("head", "decoder_passes"),
    [
        (nn.Conv2d(3, 3, 1), 1),
        (nn.Sequential(nn.Dropout2d(0.5), nn.Conv2d(3, 3, 1)), 6),
        (NPSegHead(3, 3, hidden=4, width=8, bank_size=4), 1),
    ],
)
def test_encoder_runs_once_whatever_is_sampled(head, decoder_passes):
    network = SegmentationNetwork(Counted(), Counted(), head, 3).eval()
    probs = SampledSceneInferer(6)(torch.randn(2, 3, 8, 10), network)
    assert network.encoder.calls == 1 and network.decoder.calls == decoder_passes
    assert probs.shape == (2, 3, 8, 10) and torch.allclose(probs.sum(1), torch.ones(2, 8, 10), atol=1e-5)


def test_mean_of_dropout_passes_is_the_mean_of_their_probabilities():
    torch.manual_seed(0)
    network = SegmentationNetwork(nn.Identity(), nn.Identity(), nn.Sequential(nn.Dropout2d(0.5), nn.Conv2d(3, 3, 1)), 3)
    images = torch.randn(1, 3, 4, 4)
    torch.manual_seed(7)
    found = SampledSceneInferer(3)(images, network.eval())
    torch.manual_seed(7)
    network.head[0].train()
    with torch.no_grad():
        expected = torch.stack([network.head(images).softmax(1) for _ in range(3)]).mean(0)
    assert torch.allclose(found, expected, atol=1e-6)


def test_sliding_windows_agree_with_the_whole_where_the_network_sees_single_pixels():
    network, images = by_colour().eval(), torch.randn(1, 3, 30, 44)
    whole, sliding = (scene_inferer(1, how, crop=16)(images, network) for how in ("whole", "sliding"))
    assert torch.allclose(whole, sliding, atol=1e-5)


def test_centre_crop_and_size_are_kept_in_the_settings(scene_dir, tmp_path):
    scenes = open_scenes("folder", scene_dir).train.take([0])
    SceneEvaluation(ScenePredictor(by_colour(), CLASSES, size=24), scenes, tmp_path, crop_to=32).run()
    settings = json.loads((tmp_path / "settings.json").read_text())
    assert (settings["size"], settings["crop_to"], settings["samples"]) == (24, 32, 5)
    assert np.load(tmp_path / "predictions" / "images__a_0.npz")["classes"].shape == (32, 32)


def test_split_without_test_images_says_so(tmp_path, capsys):
    from natural_image_ext.data import Scenes

    assert SceneEvaluation(ScenePredictor(by_colour(), CLASSES), Scenes(), tmp_path).run() == {}
    assert "no images to evaluate" in capsys.readouterr().out


def test_unknown_evaluation_is_named():
    with pytest.raises(ConfigError, match="evaluation 'slide' is unknown"):
        scene_inferer(1, "slide")
