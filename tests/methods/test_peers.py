"""What sets each method apart: masks that open, boxes that match, teachers that are asked again, two learners."""

import pytest
import torch
from methods.stages import first_batch, small_network
from torch import nn

from medssl.losses import DiceCE
from medssl.methods.bcp import BCP, BCPOptions
from medssl.methods.cps import CPS
from medssl.methods.fixmatch import FixMatch, FixMatchOptions
from medssl.methods.mean_teacher import MeanTeacher, MeanTeacherOptions
from medssl.methods.method import Schedule
from medssl.methods.parts import fresh_copy, mixed_both_ways, mixture_loss, noisy_passes, repeated
from medssl.methods.pseudo_bank import PseudoBank, PseudoBankOptions
from medssl.methods.scan_method import LabelledLearning, ScanMethodOptions
from medssl.methods.supervised import Supervised
from medssl.methods.ua_mt import UAMT

STEPS = 10


class Seen(nn.Module):
    """Keeps what it was given; answers with class 1 where the first channel is above 0."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(4.0))
        self.images = []

    def forward(self, image):
        self.images.append(image.detach())
        return torch.cat([-image, image], dim=1) * self.scale


class Asked(nn.Module):
    """A loss that keeps which labels it was asked for, and with which weights."""

    def __init__(self) -> None:
        super().__init__()
        self.labels, self.weights = [], []

    def forward(self, logits, labels, weight):
        self.labels.append(labels)
        self.weights.append(weight)
        return {"loss": logits.mean()}


def method_of(kind, options=None, network=None):
    torch.manual_seed(0)
    return kind(network or small_network(), DiceCE(), options, Schedule(STEPS, 5))


def weights_differ(first, second) -> bool:
    pairs = zip(first.parameters(), second.parameters(), strict=True)
    return any(not torch.equal(ours, theirs) for ours, theirs in pairs)


def test_mask_of_ua_mt_opens_with_the_ramp_up():
    method = method_of(UAMT)
    image = torch.rand(2, 1, 16, 16, 8)
    shares = []
    for step in (0, STEPS // 2, STEPS):
        method.step.fill_(step)
        torch.manual_seed(1)
        shares.append(method.certain_voxels(image).float().mean().item())
    assert shares[0] < shares[-1] and shares == sorted(shares)


def test_consistency_of_ua_mt_is_that_of_mean_teacher_where_all_voxels_are_certain():
    batch = first_batch("ua_mt")
    strict, plain = method_of(UAMT), method_of(MeanTeacher)
    strict.certain_voxels = lambda image: torch.ones(len(image), *image.shape[2:], dtype=torch.bool)
    results = []
    for method in (strict, plain):
        torch.manual_seed(2)
        method.eval()
        results.append(method(batch)["consistency"].item())
    assert results[0] == pytest.approx(results[1], rel=1e-5)


def test_noisy_passes_differ_and_leave_the_network_as_it_was():
    network = small_network()
    probs = noisy_passes(network, torch.zeros(1, 1, 16, 16, 8), 3)
    assert probs.shape == (3, 1, 2, 16, 16, 8) and not torch.equal(probs[0], probs[1])
    assert network.training and torch.allclose(probs.sum(2), torch.ones(()))


def test_boxes_match_in_image_label_and_in_who_drew_the_label():
    masks = torch.zeros(2, 4, 4, 4, dtype=torch.bool)
    masks[:, :2] = True
    labelled = (torch.ones(2, 1, 4, 4, 4), torch.ones(2, 1, 4, 4, 4, dtype=torch.long))
    unlabelled = (torch.zeros(2, 1, 4, 4, 4), torch.zeros(2, 1, 4, 4, 4, dtype=torch.long))
    mixed = mixed_both_ways(labelled, unlabelled, masks)
    assert len(mixed.images) == 4
    assert torch.equal(mixed.images.squeeze(1).bool(), mixed.is_true)
    assert torch.equal(mixed.labels.squeeze(1).bool(), mixed.is_true)
    assert torch.equal(mixed.is_true[:2], masks) and torch.equal(mixed.is_true[2:], ~masks)


def test_loss_of_mixtures_is_the_sum_over_the_two_kinds_of_voxels():
    torch.manual_seed(0)
    logits, labels = torch.randn(2, 2, 4, 4, 4), torch.randint(0, 2, (2, 1, 4, 4, 4))
    is_true = torch.rand(2, 4, 4, 4) > 0.5
    mixed = mixed_both_ways((logits[:1, :1], labels[:1]), (logits[1:, :1], labels[1:]), is_true[:1])
    terms = mixture_loss(DiceCE(1.0, 0.0), logits, mixed, 0.5)
    ce = nn.functional.cross_entropy(logits, mixed.labels.squeeze(1), reduction="none")
    expected = ce[mixed.is_true].mean() + 0.5 * ce[~mixed.is_true].mean()
    assert terms["loss"].item() == pytest.approx(expected.item(), rel=1e-5)


def test_fewer_patches_of_one_kind_are_taken_again():
    assert repeated(torch.tensor([1, 2]), 5).tolist() == [1, 2, 1, 2, 1]


def test_bcp_learns_only_from_mixtures_and_keeps_the_largest_piece_of_a_pseudo_label():
    network = Seen()
    method = method_of(BCP, BCPOptions(copy_paste=0.5), network)
    batch = first_batch("bcp")
    unlabelled = ~batch["is_labelled"]
    islands = -torch.ones_like(batch["image"][unlabelled])
    islands[:, :, 0:3, 0:3, 0:3], islands[:, :, 10, 10, 6] = 1.0, 1.0
    batch["image"][unlabelled] = batch["strong"][unlabelled] = islands
    method.loss = Asked()
    method(batch)
    assert len(network.images) == 1 and len(network.images[0]) == 4  # the teacher is a copy
    labels, is_pseudo = method.loss.labels[1].squeeze(1), method.loss.weights[1].bool()
    island, piece = torch.zeros_like(is_pseudo), torch.zeros_like(is_pseudo)
    island[:, 10, 10, 6], piece[:, 0:3, 0:3, 0:3] = True, True
    assert labels[is_pseudo & piece].min() == 1
    assert (is_pseudo & island).any() and labels[is_pseudo & island].max() == 0


@pytest.mark.parametrize(("refresh", "is_asked_again"), [(2, True), (0, False)])
def test_teacher_of_iterated_self_training_is_asked_again_after_so_many_steps(refresh, is_asked_again):
    method = method_of(PseudoBank, PseudoBankOptions(refresh_steps=refresh, ema_decay=0.5))
    for step in (1, 2):
        with torch.no_grad():
            for parameter in method.network.parameters():
                parameter.add_(1.0)
        before = [parameter.clone() for parameter in method.teacher.parameters()]
        method.after_step()
        changed = any(not torch.equal(a, b) for a, b in zip(before, method.teacher.parameters(), strict=True))
        assert changed == (is_asked_again and step == 2)
    assert weights_differ(method.teacher, method.averaged) != is_asked_again


def test_fixmatch_learns_from_confident_voxels_only():
    batch = first_batch("fixmatch")
    easy, strict = (method_of(FixMatch, FixMatchOptions(threshold=limit, cutmix=False)) for limit in (0.0, 1.0))
    assert easy(batch)["confident"] == 1 and easy(batch)["unlabelled"] > 0
    assert strict(batch)["confident"] == 0 and strict(batch)["unlabelled"] == 0


def test_networks_of_cps_differ_and_both_learn():
    method = method_of(CPS)
    assert weights_differ(method.network, method.second)
    method(first_batch("cps"))["loss"].backward()
    assert all(any(p.grad is not None and p.grad.any() for p in network.parameters()) for network in method.learners)


def test_a_network_does_not_learn_its_own_labels_in_cps():
    method = method_of(CPS)
    method.step.fill_(STEPS)
    batch = first_batch("cps")
    method.eval()
    cross = method(batch)["cross"]
    unlabelled = batch["strong"][~batch["is_labelled"]]
    ours, theirs = method.network(unlabelled), method.second(unlabelled)
    expected = nn.functional.cross_entropy(ours, theirs.argmax(1)) + nn.functional.cross_entropy(theirs, ours.argmax(1))
    assert cross.item() == pytest.approx(expected.item(), rel=1e-5)


def test_fresh_copy_has_other_weights_of_the_same_shape():
    network = small_network()
    copied = fresh_copy(network)
    assert weights_differ(network, copied)
    assert [p.shape for p in network.parameters()] == [p.shape for p in copied.parameters()]


def test_supervised_average_is_evaluated_where_it_is_asked_for():
    plain, averaged = method_of(Supervised), method_of(Supervised, ScanMethodOptions(ema_decay=0.9))
    assert plain.evaluated is plain.network and "average.n_averaged" not in plain.state_dict()
    assert averaged.evaluated is not averaged.network and averaged.teachers == ()


def test_copy_paste_mixes_labelled_patches_with_their_labels():
    method = method_of(LabelledLearning, ScanMethodOptions(copy_paste=0.5))
    image = torch.stack([torch.full((1, 8, 8, 8), float(value)) for value in (0, 1)])
    mixed, label = method.labelled_patches({"image": image, "label": image.long()})
    assert torch.equal(mixed.long(), label)
    assert (mixed[0] == 1).sum() == (mixed[1] == 0).sum() == 4**3


def test_pretraining_is_a_stage_of_labels_alone_with_the_same_average():
    (stage,) = MeanTeacher.earlier_stages(MeanTeacherOptions(pretraining=0.25, copy_paste=0.5))
    assert (stage.name, stage.method, stage.share) == ("pretraining", LabelledLearning, 0.25)
    assert stage.options == ScanMethodOptions(ema_decay=0.99, copy_paste=0.5)
    assert MeanTeacher.earlier_stages(MeanTeacherOptions()) == ()
