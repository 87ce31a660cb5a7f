"""GBDL's two stages: which term sees which patches, and that both learn."""

import pytest
import torch

from medssl.losses import DiceCE
from medssl.methods import LatentLearning, PosteriorLearning
from medssl.networks import LRL, MCDropoutUNet3D

SMALL = {"patch_size": (16, 16, 4), "widths": (4, 8), "latent_dim": 5}


@pytest.fixture
def batch():
    torch.manual_seed(0)
    label = torch.zeros(3, 1, 16, 16, 4, dtype=torch.uint8)
    label[:, :, 4:12, 5:11] = 1
    image = label.float() * 1.2 - 0.6 + 0.1 * torch.randn(3, 1, 16, 16, 4)
    return {"image": image, "label": label, "is_labelled": torch.tensor([True, False, True])}


def latent_learning(**options):
    torch.manual_seed(1)
    return LatentLearning(LRL(1, 2, **SMALL), DiceCE(1.0, 2.0), **options)


def posterior_learning(**options):
    torch.manual_seed(1)
    network = MCDropoutUNet3D(1, 2, (4, 8), dropout=0.0)
    return PosteriorLearning(network, LRL(1, 2, **SMALL), DiceCE(), **options)


def evaluate(method, batch):
    torch.manual_seed(2)
    return method(batch)


def test_stage_1_loss_is_the_weighted_sum_of_its_terms(batch):
    found = evaluate(latent_learning(mse_weight=1.5, kl_weight=0.01), batch)
    expected = found["ce"] + 2 * found["dice"] + 1.5 * found["mse"] + 0.01 * found["kl"]
    assert found["loss"].item() == pytest.approx(expected.item(), rel=1e-6)


def test_labels_of_unlabelled_patches_are_never_read(batch):
    changed = {**batch, "label": batch["label"].clone()}
    changed["label"][1] = 1 - changed["label"][1]
    for method in (latent_learning(), posterior_learning()):
        assert evaluate(method, batch)["loss"] == evaluate(method, changed)["loss"]
    changed["label"][0] = 1 - changed["label"][0]
    assert evaluate(latent_learning(), batch)["loss"] != evaluate(latent_learning(), changed)["loss"]


def test_reconstruction_and_kl_see_unlabelled_patches(batch):
    changed = {**batch, "image": batch["image"].clone()}
    changed["image"][1] += 0.5
    before, after = evaluate(latent_learning(), batch), evaluate(latent_learning(), changed)
    assert before["mse"] != after["mse"] and before["kl"] != after["kl"] and before["ce"] == after["ce"]


def test_batch_without_labels_has_no_segmentation_terms(batch):
    batch["is_labelled"][:] = False
    found = evaluate(latent_learning(), batch)
    assert "ce" not in found and torch.isfinite(found["loss"])


def test_sum_of_slices_is_another_divergence_than_the_product(batch):
    product, total = evaluate(latent_learning(), batch), evaluate(latent_learning(kl="sum"), batch)
    assert product["kl"] < total["kl"] and product["mse"] == total["mse"]


def test_both_stages_learn(batch):
    for method in (latent_learning(), posterior_learning()):
        optimizer = torch.optim.Adam([p for p in method.parameters() if p.requires_grad], lr=1e-2)
        losses = []
        for _ in range(25):
            optimizer.zero_grad()
            loss = method.train()(batch)["loss"]
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < 0.7 * losses[0]


def test_teacher_is_frozen_and_stays_in_evaluation_mode(batch):
    method = posterior_learning().train()
    method(batch)["loss"].backward()
    assert not method.teacher.training and method.network.training
    assert all(p.grad is None for p in method.teacher.parameters())
    assert any(p.grad is not None for p in method.network.parameters())


def test_pseudo_labels_are_the_mean_of_the_draws_soft_or_hard(batch):
    image = batch["image"]
    soft, hard = posterior_learning(samples=4), posterior_learning(samples=4, pseudo="hard")
    torch.manual_seed(3)
    expected = soft.teacher.pseudo_label_samples(image, 4).mean(0)
    torch.manual_seed(3)
    assert torch.equal(soft._pseudo_labels(image)[0], expected)
    torch.manual_seed(3)
    assert torch.equal(hard._pseudo_labels(image)[0], expected.argmax(1, keepdim=True))


def test_entropy_weight_is_one_for_sure_and_zero_for_undecided_draws(batch):
    method = posterior_learning(weigh_by_entropy=True)
    for logit, expected in ((60.0, 1.0), (0.0, 0.0)):
        torch.nn.init.zeros_(method.teacher.classifier.weight)
        method.teacher.classifier.bias.data = torch.tensor([logit, 0.0])
        assert method._pseudo_labels(batch["image"])[1].item() == pytest.approx(expected, abs=1e-5)
