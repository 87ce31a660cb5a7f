"""mIoU, PAvPU and the table of images against plain counting; how often encoder and decoder run."""

import csv
import json
import math

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from medssl.core.errors import ConfigError
from natural_image_ext.data import open_scenes, read_mask, read_picture
from natural_image_ext.inference import SampledSceneInferer, SceneEvaluation, ScenePredictor, scene_inferer
from natural_image_ext.inference.scene_evaluation import confusion_matrix, iou_of_classes
from natural_image_ext.inference.scene_predictor import ScenePrediction
from natural_image_ext.networks import LayeredHead, NPSegHead, PlainHead, SegmentationNetwork

CLASSES = ("ground", "red", "blue")


class ConvHead(PlainHead, nn.Conv2d):
    """One convolution as a head."""


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
    head = ConvHead(3, 3, 1)
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


class Fixed:
    """A predictor that always finds the same."""

    classes = CLASSES

    def __init__(self, found):
        self.found = found

    def __call__(self, image, name):
        return self.found

    def settings(self):
        return {}


@pytest.mark.parametrize(("threshold", "share"), [(0.4, 1.0), (0.2, 0.5)])
def test_pavpu_has_its_windows_and_threshold_and_leaves_pixels_without_label_out(tmp_path, threshold, share):
    label, entropy = np.zeros((4, 8), np.uint8), np.full((4, 8), 0.1, np.float32)
    entropy[:, :4] = 0.3  # the left window is right throughout, certain below 0.4 and not below 0.2
    label[:, 4:] = 255  # the right one is right and certain where it has a label; most of it has none
    label[:2, 4:7] = 1
    for part, pixels in (("images", np.zeros((4, 8, 3), np.uint8)), ("masks", label)):
        (tmp_path / part).mkdir()
        Image.fromarray(pixels).save(tmp_path / part / "one.png")
    predictor = Fixed(ScenePrediction(np.where(label == 255, 2, label).astype(np.uint8), entropy))
    scenes = open_scenes("folder", tmp_path, CLASSES).train
    evaluation = SceneEvaluation(predictor, scenes, tmp_path / "out", pavpu_window=4, pavpu_threshold_nats=threshold)
    assert evaluation.run()["pavpu"] == share


def test_network_sees_images_of_the_predictors_size():
    seen = []
    network = by_colour()
    network.encoder.register_forward_pre_hook(lambda module, given: seen.append(tuple(given[0].shape)))
    image = torch.zeros(3, 40, 48, dtype=torch.uint8)
    for size in (None, 24):
        assert ScenePredictor(network, CLASSES, size=size)(image, "x").classes.shape == (40, 48)
    assert seen == [(1, 3, 40, 48), (1, 3, 20, 24)]


def test_entropy_is_in_nats():
    network = by_colour()
    with torch.no_grad():
        network.head.weight.zero_()
        network.head.bias.copy_(torch.tensor([0.7, 0.2, 0.1]).log())
    found = ScenePredictor(network, CLASSES)(torch.zeros(3, 4, 6, dtype=torch.uint8), "x")
    assert np.allclose(found.entropy, 0.8018185525, atol=1e-5)


def test_confusion_leaves_pixels_without_label_out_and_absent_classes_have_no_iou():
    label, found = np.array([[0, 1, 255, 1]]), np.array([[0, 0, 1, 1]])
    confusion = confusion_matrix(found, label, 3)
    assert confusion.tolist() == [[1, 0, 0], [1, 1, 0], [0, 0, 0]]
    ious = iou_of_classes(confusion)
    assert ious[:2].tolist() == [0.5, 0.5] and np.isnan(ious[2])


@pytest.mark.parametrize(
    ("head", "decoder_passes"),
    [
        (ConvHead(3, 3, 1), 1),
        (LayeredHead(nn.Dropout2d(0.5), nn.Conv2d(3, 3, 1)), 6),
        (NPSegHead(3, 3, hidden=4, width=8, bank_size=4), 1),
    ],
)
def test_encoder_runs_once_whatever_is_sampled(head, decoder_passes):
    network = SegmentationNetwork(Counted(), Counted(), head, 3).eval()
    probs = SampledSceneInferer(6)(torch.randn(2, 3, 8, 10), network)
    assert network.encoder.calls == 1 and network.decoder.calls == decoder_passes
    assert probs.shape == (2, 3, 8, 10) and torch.allclose(probs.sum(1), torch.ones(2, 8, 10), atol=1e-5)


@pytest.mark.parametrize(
    "head",
    [
        LayeredHead(nn.Dropout2d(0.5), nn.Conv2d(3, 3, 1)),
        NPSegHead(3, 3, hidden=4, width=8, bank_size=4),
        ConvHead(3, 3, 1),
    ],
)
def test_no_samples_are_one_pass_without_chance(head):
    network = SegmentationNetwork(Counted(), Counted(), head, 3).eval()
    images = torch.randn(2, 3, 8, 10)
    first, second = (SampledSceneInferer(0)(images, network) for _ in range(2))
    assert torch.equal(first, second) and network.decoder.calls == 2
    if not isinstance(head, NPSegHead):
        assert torch.allclose(first, network(images).softmax(1), atol=1e-6)


def test_mean_of_dropout_passes_is_the_mean_of_their_probabilities():
    torch.manual_seed(0)
    network = SegmentationNetwork(nn.Identity(), nn.Identity(), LayeredHead(nn.Dropout2d(0.5), nn.Conv2d(3, 3, 1)), 3)
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


class PlusItsMean(nn.Module):
    """Images plus the mean of what is seen at once; notes what the first pixel of each says."""

    def __init__(self):
        super().__init__()
        self.starts = []

    def forward(self, images):
        self.starts += [tuple(image[:2, 0, 0].int().tolist()) for image in images]
        return images + images.mean((2, 3), keepdim=True)


def test_windows_move_by_two_thirds_and_are_averaged():
    torch.manual_seed(0)
    network = SegmentationNetwork(PlusItsMean(), nn.Identity(), ConvHead(3, 3, 1), 3).eval()
    rows, columns = torch.meshgrid(torch.arange(60.0), torch.arange(84.0), indexing="ij")
    images = torch.stack([rows, columns, torch.randn(60, 84)])[None]
    sliding = scene_inferer(1, "sliding", crop=24)(images, network)
    starts = [(row, column) for row in (0, 16, 32, 36) for column in (0, 16, 32, 48, 60)]
    assert sorted(network.encoder.starts) == starts
    total, seen = torch.zeros(1, 3, 60, 84), torch.zeros(60, 84)
    with torch.no_grad():
        for row, column in starts:
            window = (..., slice(row, row + 24), slice(column, column + 24))
            total[window] += network(images[window]).softmax(1)
            seen[window] += 1
    assert torch.allclose(sliding, total / seen, atol=1e-5)
    assert not torch.allclose(sliding, scene_inferer(1, "whole")(images, network), atol=0.01)


def test_only_the_centre_is_predicted_and_compared(scene_dir, tmp_path):
    scenes = open_scenes("folder", scene_dir).train.take([0, 9])
    predictor = ScenePredictor(by_colour(), CLASSES)
    metrics = SceneEvaluation(predictor, scenes, tmp_path, crop_to=32).run()
    right = counted = 0
    for place in range(2):
        whole = predictor(read_picture(scenes.images[place]), scenes.ids[place])
        stored = np.load(tmp_path / "predictions" / f"{scenes.ids[place].replace('/', '__')}.npz")
        assert np.array_equal(stored["classes"], whole.classes[4:36, 8:40])
        assert np.allclose(stored["entropy"], whole.entropy[4:36, 8:40], atol=2e-3)
        label = read_mask(scenes.masks[place], 3)[4:36, 8:40]
        right, counted = right + (stored["classes"] == label).sum(), counted + (label != 255).sum()
    assert metrics["accuracy"] == pytest.approx(right / counted)


def test_centre_crop_and_size_are_kept_in_the_settings(scene_dir, tmp_path):
    scenes = open_scenes("folder", scene_dir).train.take([0])
    SceneEvaluation(ScenePredictor(by_colour(), CLASSES, size=24), scenes, tmp_path, crop_to=32).run()
    settings = json.loads((tmp_path / "settings.json").read_text())
    assert (settings["size"], settings["crop_to"], settings["samples"]) == (24, 32, 5)
    stored = tmp_path / "predictions" / "images__a_0.npz"
    assert np.load(stored)["classes"].shape == (32, 32)
    SceneEvaluation(ScenePredictor(by_colour(), CLASSES), scenes, tmp_path, crop_to=999).run()
    assert np.load(stored)["classes"].shape == (40, 48)


def test_split_without_test_images_says_so(tmp_path, capsys):
    from natural_image_ext.data import Scenes

    assert SceneEvaluation(ScenePredictor(by_colour(), CLASSES), Scenes(), tmp_path).run() == {}
    assert "no images to evaluate" in capsys.readouterr().out


def test_unknown_evaluation_is_named():
    with pytest.raises(ConfigError, match="evaluation 'slide' is unknown"):
        scene_inferer(1, "slide")


def drawing_network():
    """A neural process whose latent reaches the output, as nothing normalises it away."""
    torch.manual_seed(0)
    head = NPSegHead(3, 3, samples=4, hidden=4, width=8, bank_size=4)
    head.decoder = nn.Sequential(nn.Identity(), nn.Tanh(), nn.Conv2d(8, 3, 1))
    return SegmentationNetwork(Counted(), Counted(), head, 3)


@pytest.mark.parametrize("evaluation", ["whole", "sliding"])
def test_evaluation_says_how_much_the_latent_does(scene_dir, tmp_path, evaluation):
    scenes = open_scenes("folder", scene_dir).train.take(range(2))
    network = drawing_network()
    predictor = ScenePredictor(network, CLASSES, inferer=scene_inferer(4, evaluation, 32))
    found = SceneEvaluation(predictor, scenes, tmp_path / "drawn").run()
    assert 0.001 < found["latent_share"] < 1
    with torch.no_grad():
        network.head.first.weight[:, 3:] = 0  # what latent and context are multiplied by
    assert SceneEvaluation(predictor, scenes, tmp_path / "cut").run()["latent_share"] < 1e-5
    plain = ScenePredictor(by_colour(), CLASSES)
    assert "latent_share" not in SceneEvaluation(plain, scenes, tmp_path / "plain").run()


def test_measuring_the_latent_changes_no_prediction(scene_dir):
    scenes, network = open_scenes("folder", scene_dir).train, drawing_network()
    image = read_picture(scenes.images[0])
    inferer, shown = SampledSceneInferer(4), torch.rand(1, 3, 16, 16)
    torch.manual_seed(5)
    probs = inferer(shown, network)
    torch.manual_seed(5)
    maps = inferer.with_information(shown, network)
    assert torch.equal(maps[:, :-1], probs) and (maps[:, -1] >= 0).all()
    assert ScenePredictor(network, CLASSES, inferer=inferer)(image, "x").information.shape == image.shape[1:]
    assert ScenePredictor(network, CLASSES, inferer=SampledSceneInferer(1))(image, "x").information is None


def test_the_thesis_head_hardly_lets_its_latent_through(scene_dir, tmp_path):
    """Thesis, table C.2: an InstanceNorm behind the first convolution takes away what is constant over the image."""
    torch.manual_seed(0)
    network = SegmentationNetwork(Counted(), Counted(), NPSegHead(3, 3, samples=4, width=8, bank_size=4), 3)
    scenes = open_scenes("folder", scene_dir).train.take(range(2))
    predictor = ScenePredictor(network, CLASSES, inferer=SampledSceneInferer(4))
    assert SceneEvaluation(predictor, scenes, tmp_path).run()["latent_share"] < 0.01
