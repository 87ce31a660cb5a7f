"""Error, UCE and the table of pictures against plain counting; which network samples what."""

import csv
import json
import math

import numpy as np
import pytest
import torch
from torch import nn

from natural_image_ext.data import LabelledPictures, Pictures, Views
from natural_image_ext.inference import PictureEvaluation, PicturePredictor, SampledInferer
from natural_image_ext.networks import Classifier, LayeredHead, LinearHead, NPHead


class Brightness(nn.Module):
    """The mean of each colour as features."""

    def forward(self, images):
        return images.mean((-1, -2))


CLASSES = tuple("abcdefg")


@pytest.fixture
def pictures():
    rng = np.random.default_rng(0)
    pixels = list(rng.integers(0, 256, (40, 4, 4, 3), dtype=np.uint8))
    return Pictures(pixels, [int(i) for i in rng.integers(0, 7, 40)], [f"p{i}" for i in range(40)])


def evaluated(network, pictures, folder):
    return PictureEvaluation(PicturePredictor(network, CLASSES, 4, batch_size=16), pictures, folder).run()


def test_metrics_equal_plain_counting_and_every_picture_has_a_row(pictures, tmp_path):
    torch.manual_seed(0)
    network = Classifier(Brightness(), LinearHead(3, 7))
    metrics = evaluated(network, pictures, tmp_path)
    wrong = far = 0
    for sample in LabelledPictures(pictures, Views(4).plain()):
        order = network(sample["image"][None])[0].argsort(descending=True).tolist()
        wrong += order[0] != sample["label"]
        far += sample["label"] not in order[:5]
    assert metrics["error"] == pytest.approx(wrong / 40) and metrics["top5_error"] == pytest.approx(far / 40)
    rows = list(csv.DictReader((tmp_path / "per_sample.csv").open()))
    assert [row["sample"] for row in rows] == pictures.ids
    assert sum(int(row["error"]) for row in rows) == wrong and sum(int(row["top5_error"]) for row in rows) == far
    assert all(0 <= float(row["uncertainty_nats"]) <= math.log(7) + 1e-6 for row in rows)
    assert json.loads((tmp_path / "metrics.json").read_text()) == metrics
    weighted = sum(metrics["classes"][name]["accuracy"] * pictures.labels.count(n) for n, name in enumerate(CLASSES))
    assert weighted / 40 == pytest.approx(1 - metrics["error"])


def test_uce_equals_a_plain_loop_over_bins(pictures, tmp_path):
    torch.manual_seed(0)
    metrics = evaluated(Classifier(Brightness(), LinearHead(3, 7)), pictures, tmp_path)
    rows = list(csv.DictReader((tmp_path / "per_sample.csv").open()))
    shares = [float(row["uncertainty_nats"]) / math.log(7) for row in rows]
    wrong = [int(row["error"]) for row in rows]
    expected = 0.0
    for number in range(15):
        inside = [i for i, share in enumerate(shares) if number / 15 < share <= (number + 1) / 15]
        if inside:
            expected += abs(sum(shares[i] - wrong[i] for i in inside)) / 40
    assert metrics["uce"] == pytest.approx(expected, abs=1e-5)


def test_undecided_network_is_uncertain_by_log_c(tmp_path):
    network = Classifier(Brightness(), LinearHead(3, 7))
    nn.init.zeros_(network.head.weight), nn.init.zeros_(network.head.bias)
    pictures = Pictures([np.zeros((4, 4, 3), np.uint8)] * 4, [0, 2, 3, 4], list("abcd"))
    metrics = evaluated(network, pictures, tmp_path)
    assert metrics["mean_uncertainty_nats"] == pytest.approx(math.log(7)) and metrics["error"] == pytest.approx(0.75)
    assert metrics["uce"] == pytest.approx(0.25, abs=1e-6)


def test_same_seed_gives_the_same_table(pictures, tmp_path):
    torch.manual_seed(0)
    network = Classifier(Brightness(), NPHead(3, 7, hidden=4, bank_size=5))
    evaluated(network, pictures, tmp_path / "a")
    torch.manual_seed(7)
    evaluated(network, pictures, tmp_path / "b")
    assert (tmp_path / "a" / "per_sample.csv").read_text() == (tmp_path / "b" / "per_sample.csv").read_text()


def test_dropout_and_neural_process_are_sampled_and_a_plain_network_is_not():
    images, calls = torch.rand(2, 3, 4, 4), []

    class Counted(Brightness):
        def forward(self, images):
            calls.append(1)
            return super().forward(images)

    for head, expected in (
        (LinearHead(3, 7), 1),
        (LayeredHead(nn.Dropout(0.5), nn.Linear(3, 7)), 6),
        (NPHead(3, 7, 4), 1),
    ):
        calls.clear()
        probs = SampledInferer(6)(images, Classifier(Counted(), head))
        assert len(calls) == expected and torch.allclose(probs.sum(-1), torch.ones(2), atol=1e-5)


def test_latent_share_is_mutual_information_over_entropy_of_all_pictures(pictures, tmp_path):
    torch.manual_seed(0)
    network = Classifier(Brightness(), NPHead(3, 7, hidden=4, samples=4, bank_size=8))
    predictor = PicturePredictor(network, CLASSES, 4, SampledInferer(4), batch_size=40)
    metrics = PictureEvaluation(predictor, pictures, tmp_path).run()
    drawn = []
    network.head.register_forward_hook(lambda module, args, output: drawn.append(output.sample_probs.double()))
    probs = predictor(pictures)
    assert torch.equal(probs, predictor.with_latent_share(pictures)[0])
    draws = drawn[0]

    def entropy(values):
        return -(values * values.log()).sum(-1)

    information = entropy(draws.mean(0)) - entropy(draws).mean(0)
    expected = float(information.sum() / entropy(draws.mean(0)).sum())
    assert metrics["latent_share"] == pytest.approx(expected, rel=1e-3) and expected > 0


def test_latent_that_reaches_nothing_has_no_share(pictures, tmp_path):
    torch.manual_seed(0)
    network = Classifier(Brightness(), NPHead(3, 7, hidden=4, samples=4, bank_size=8))
    with torch.no_grad():
        network.head.decoder[0].weight[:, :4] = 0  # what z is multiplied by
    assert evaluated(network, pictures, tmp_path)["latent_share"] < 1e-6


@pytest.mark.parametrize("head", [LinearHead(3, 7), NPHead(3, 7, hidden=4)])
def test_share_is_measured_of_latents_and_of_two_samples_or_more_only(pictures, tmp_path, head):
    predictor = PicturePredictor(Classifier(Brightness(), head), CLASSES, 4, SampledInferer(1), batch_size=16)
    assert "latent_share" not in PictureEvaluation(predictor, pictures, tmp_path).run()
