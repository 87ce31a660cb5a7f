"""GBDL's two stages: which term sees which patches, and that both learn."""

import pytest
import torch

from medssl.losses import DiceCE
from medssl.methods import LatentLearning, PosteriorLearning, PseudoLabels
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


def posterior_learning(samples=5, teacher=None, **options):
    torch.manual_seed(1)
    network = MCDropoutUNet3D(1, 2, (4, 8), dropout=0.0)
    teacher = LRL(1, 2, **SMALL) if teacher is None else teacher
    return PosteriorLearning(network, PseudoLabels(teacher, samples), DiceCE(), **options)


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


def test_teacher_is_frozen_in_evaluation_mode_and_no_part_of_the_checkpoint(batch):
    teacher = LRL(1, 2, **SMALL).train()
    method = posterior_learning(teacher=teacher).train()
    method(batch)["loss"].backward()
    assert not teacher.training and method.network.training
    assert all(p.grad is None for p in teacher.parameters())
    assert any(p.grad is not None for p in method.network.parameters())
    assert {name.split(".")[0] for name in method.state_dict()} == {"network", "_extra_state"}


def test_building_the_second_stage_leaves_the_teacher_trainable():
    teacher = LRL(1, 2, **SMALL)
    posterior_learning(teacher=teacher)
    assert all(p.requires_grad for p in teacher.parameters())


def test_pseudo_labels_are_the_mean_of_the_draws_soft_or_hard(batch):
    image, teacher = batch["image"], LRL(1, 2, **SMALL)
    soft = posterior_learning(samples=4, teacher=teacher)
    hard = posterior_learning(samples=4, teacher=teacher, pseudo="hard")
    torch.manual_seed(3)
    expected = teacher.pseudo_label_samples(image, 4).mean(0)
    torch.manual_seed(3)
    assert torch.equal(soft._targets(image)[0], expected) and soft._targets(image)[1] is None
    torch.manual_seed(3)
    assert torch.equal(hard._targets(image)[0], expected.argmax(1, keepdim=True))


class FixedTeacher(torch.nn.Module):
    """Pseudo-labels of (B, 2, ...) that are sure of class 1 in the first half of the rows and undecided in the rest."""

    def pseudo_label_samples(self, x, samples):
        foreground = torch.full((samples, len(x), 1, *x.shape[2:]), 0.5)
        foreground[:, :, :, : x.shape[2] // 2] = 1.0
        return torch.cat([1 - foreground, foreground], dim=2)


def test_entropy_weight_is_one_where_draws_are_sure_and_zero_where_undecided(batch):
    method = posterior_learning(teacher=FixedTeacher(), weigh_by_entropy=True)
    weight = method._targets(batch["image"])[1]
    assert weight.shape == (3, 16, 16, 4)
    assert torch.allclose(weight[:, :8], torch.ones(1)) and torch.allclose(weight[:, 8:], torch.zeros(1))
    assert method(batch)["pseudo_weight"].item() == pytest.approx(0.5)


def test_undecided_voxels_do_not_pull_on_the_network_if_weighted(batch):
    method = posterior_learning(teacher=FixedTeacher(), weigh_by_entropy=True)
    batch["is_labelled"][:] = False
    logits = {}
    method.network.register_forward_hook(lambda module, inputs, output: logits.update(kept=output))
    loss = method(batch)["loss"]
    (gradient,) = torch.autograd.grad(loss, logits["kept"])
    assert gradient[:, :, 8:].abs().max() < 1e-9 and gradient[:, :, :8].abs().max() > 0


@pytest.mark.parametrize("wrong", [{"pseudo": "firm"}, {"samples": 0}])
def test_unknown_choices_are_refused(wrong):
    with pytest.raises(ValueError, match=r"firm|samples 0"):
        posterior_learning(**wrong)


def test_health_tells_the_length_of_v_and_the_latent_variance(batch):
    method = latent_learning()
    torch.nn.init.zeros_(method.network.to_v.linear.weight)
    torch.nn.init.constant_(method.network.to_v.linear.bias, 2.0)
    found = evaluate(method, batch)
    assert found["v_squared"].item() == pytest.approx(5 * 4.0)
    assert found["latent_variance"].item() == pytest.approx((20.0**2 + 5 * 1.0) / 5)


def test_long_v_stays_finite_in_half_precision(batch):
    method = latent_learning()
    torch.nn.init.constant_(method.network.to_v.linear.bias, 20.0)
    with torch.autocast("cpu", dtype=torch.float16):
        found = evaluate(method, batch)
    assert found["v_squared"].item() > 1500 and all(torch.isfinite(value) for value in found.values())


def test_checkpoint_of_another_teacher_or_kind_of_label_is_refused():
    method = posterior_learning()
    state = method.state_dict()
    posterior_learning().load_state_dict(state)
    torch.manual_seed(9)
    for other in (posterior_learning(pseudo="hard"), posterior_learning(teacher=LRL(1, 2, **SMALL))):
        with pytest.raises(ValueError, match="the second stage learned from"):
            other.load_state_dict(state)


@pytest.mark.parametrize("options", [{"kl": "sum"}, {"kl_weight": 0.0}, {"mse_weight": 2.0}])
def test_first_stage_of_other_losses_is_refused(options):
    with pytest.raises(ValueError, match="the first stage was trained with"):
        latent_learning(**options).load_state_dict(latent_learning().state_dict())


def test_reconstruction_is_compared_with_the_scan_inside_of_tanhs_range(batch):
    method = latent_learning()
    torch.nn.init.zeros_(method.network.painter.weight)
    torch.nn.init.constant_(method.network.painter.bias, -20.0)
    batch["image"][:] = -1.3
    assert evaluate(method, batch)["mse"].item() == pytest.approx(0.0, abs=1e-6)
