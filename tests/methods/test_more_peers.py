"""What sets the further methods apart: uncertainty that weighs, heads that disagree, a discriminator that learns."""

import math

import pytest
import torch
from methods.stages import first_batch, small_network

from medssl.losses import DiceCE
from medssl.methods.coranet import CoraNet, CoraNetOptions, agreement, mean_where
from medssl.methods.double_ua import DoubleUA, feature_uncertainty, label_uncertainty, weighted_consistency
from medssl.methods.dtc import DTC
from medssl.methods.graph_s2net import Answers, GraphS2Net, taught_error
from medssl.methods.lg_er_mt import LGERMT, local_error, self_information
from medssl.methods.mc_net import MCNet, mutual_error, sharpened
from medssl.methods.method import Schedule
from medssl.methods.noisy_student import NoisyStudent, NoisyStudentOptions, StudentRound
from medssl.methods.parts import GraphExchange, signed_distance_maps
from medssl.methods.reciprocal_learning import ReciprocalLearning, cross_entropy
from medssl.methods.sassnet import SASSNet
from medssl.methods.scan_method import LabelledLearning
from medssl.methods.tripled_ua import Tasks, TripledUA, fused, task_error, weighted_errors
from medssl.methods.unimatch import UniMatch, UniMatchOptions, changed_again

STEPS = 10


def method_of(kind, options=None, network=None):
    torch.manual_seed(0)
    return kind(network or small_network(), DiceCE(), options, Schedule(STEPS, 5))


def weights_of(module) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in module.parameters()])


def has_gradient(module) -> bool:
    return any(parameter.grad is not None and parameter.grad.any() for parameter in module.parameters())


# noisy student


def test_noisy_student_trains_on_labels_then_rounds_and_is_fine_tuned_on_labels():
    stages = NoisyStudent.earlier_stages(NoisyStudentOptions(rounds=3, pretraining=0.3, fine_tuning=0.1))
    assert [stage.name for stage in stages] == ["pretraining", "round_1", "round_2", "round_3"]
    assert [stage.method for stage in stages] == [LabelledLearning, StudentRound, StudentRound, StudentRound]
    assert sum(stage.share for stage in stages) == pytest.approx(0.9)
    assert not NoisyStudent.needs_unlabelled and NoisyStudent.facts.learns_from_unlabelled


def test_a_student_begins_with_fresh_weights_and_its_teacher_with_those_of_the_stage_before():
    network = small_network()
    method = method_of(StudentRound, network=network)
    assert torch.equal(weights_of(method.teacher), weights_of(network))
    assert not torch.equal(weights_of(method.network), weights_of(network))


def test_a_student_learns_hard_labels_of_the_teacher_on_the_strong_view():
    method, batch = method_of(StudentRound), first_batch("noisy_student")
    method.eval()
    unlabelled = ~batch["is_labelled"]
    labels = method.teacher(batch["image"][unlabelled]).argmax(1, keepdim=True)
    expected = method.loss(method.network(batch["strong"][unlabelled]), labels)["loss"]
    assert method(batch)["pseudo"].item() == pytest.approx(expected.item(), rel=1e-5)


# Double-UA and Tripled-UA


def test_weights_of_double_ua_follow_the_uncertainty():
    student, teacher = torch.ones(1, 1, 2), torch.zeros(1, 1, 2)
    sure, _ = weighted_consistency(student, teacher, torch.tensor([[[0.0, 0.0]]]))
    mixed, mean = weighted_consistency(student, teacher, torch.tensor([[[0.0, 2.0]]]))
    assert sure == 1 and mean == 1
    assert mixed.item() == pytest.approx((1 + math.exp(-2)) / 2)


def test_uncertainties_of_double_ua_are_entropy_and_variance_over_passes():
    probs = torch.tensor([[0.9, 0.1], [0.1, 0.9]]).view(2, 1, 2, 1)
    assert label_uncertainty(probs).item() == pytest.approx(math.log(2))
    features = torch.zeros(2, 1, 1, 2)
    features[1, ..., 1] = 3.0  # passes agree on the first voxel only
    assert feature_uncertainty(features).flatten().tolist() == pytest.approx([0.0, 2.0])
    assert feature_uncertainty(torch.ones(2, 1, 1, 2)).sum() == 0


def test_double_ua_records_both_uncertainties_and_counts_labelled_patches():
    method, batch = method_of(DoubleUA), first_batch("double_ua")
    seen = []
    method.averaged.register_forward_pre_hook(lambda _network, inputs: seen.append(len(inputs[0])))
    terms = method(batch)
    assert seen == [4] * 8
    assert terms["label_uncertainty"] > 0 and terms["feature_uncertainty"].item() == pytest.approx(1, abs=1e-4)


def test_passes_of_tripled_ua_that_are_sure_weigh_more_and_uncertain_voxels_less():
    probs = torch.tensor([[0.99, 0.01], [0.5, 0.5]]).view(2, 1, 2, 1)
    values = torch.tensor([1.0, 0.0]).view(2, 1, 1, 1)
    mean, weights = fused(Tasks(probs, values, values))
    assert mean.distances.item() > 0.5, "nearer to the sure pass than to the other one"
    assert weights.distances.item() == pytest.approx(math.exp(-values.var().item()))
    assert weights.foreground.item() == pytest.approx(math.exp(-values.std().item()))
    entropy = -(mean.probs * mean.probs.log2()).sum().item()
    assert weights.probs.item() == pytest.approx(1 - entropy, abs=1e-5)
    same, full = fused(Tasks(probs[:1].repeat(2, 1, 1, 1), values[:1].repeat(2, 1, 1, 1), values * 0))
    assert full.distances.item() == full.foreground.item() == 1
    assert weighted_errors(same, same, full) == 0


def test_tasks_of_tripled_ua_are_right_for_true_distances_and_the_foreground_of_the_image():
    image, label = torch.rand(1, 1, 6, 6, 6), torch.zeros(1, 1, 6, 6, 6, dtype=torch.uint8)
    label[:, :, 2:5, 2:5, 2:5] = 1
    right = Tasks(torch.empty(0), signed_distance_maps(label, 2), image * label)
    assert task_error(right, image, label) == 0
    assert task_error(right._replace(distances=-right.distances), image, label) > 0
    assert task_error(right._replace(foreground=image), image, label) > 0


def test_heads_of_tripled_ua_learn_and_their_average_follows():
    method = method_of(TripledUA)
    method(first_batch("tripled_ua"))["loss"].backward()
    assert all(has_gradient(head) for head in method.heads.heads.values()) and not has_gradient(method.average_heads)
    with torch.no_grad():
        for parameter in method.heads.parameters():
            parameter.add_(1.0)
    method.after_step()
    assert torch.equal(weights_of(method.average_heads), weights_of(method.heads))


# CoraNet


def test_voxels_are_certain_where_conservative_and_radical_labels_agree():
    conservative = torch.tensor([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]).unsqueeze(0)
    radical = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]).unsqueeze(0)
    labels, certain = agreement({"plain": radical, "conservative": conservative, "radical": radical})
    assert certain.tolist() == [[True, False, True]] and labels.tolist() == [[[0, 0, 1]]]


def test_conservative_head_says_less_foreground_than_the_radical_one_after_learning():
    method = method_of(CoraNet)
    batch = first_batch("coranet")
    logits = {name: torch.zeros(1, 2, 16, requires_grad=True) for name in ("plain", "conservative", "radical")}
    label = (torch.arange(16) % 2).view(1, 1, 16)
    method.label_loss(logits, label, torch.ones(1, 16, dtype=torch.bool)).backward()
    pushed = {name: -value.grad[:, 1].sum() for name, value in logits.items()}  # where a step would move foreground
    assert pushed["conservative"] < pushed["plain"] < pushed["radical"]
    assert method(batch)["certain"] == 1, "the heads begin alike"


def test_a_patch_without_certain_voxels_adds_nothing():
    values, counts = torch.ones(2, 4), torch.tensor([[True, True, False, False], [False] * 4])
    assert mean_where(values, counts) == 0.5
    method = method_of(CoraNet, CoraNetOptions(caution=2.0))
    logits = {name: torch.randn(1, 2, 4) for name in ("plain", "conservative", "radical")}
    nothing = method.label_loss(logits, torch.ones(1, 1, 4), torch.zeros(1, 4, dtype=torch.bool))
    assert nothing.item() == pytest.approx(0)


# MC-Net+


def test_sharpened_probabilities_are_nearly_hard_and_sum_to_one():
    probs = torch.tensor([[0.6, 0.5], [0.4, 0.5]]).unsqueeze(0)
    sharp = sharpened(probs, 0.1)
    assert sharp[0, 0, 0].item() == pytest.approx(0.6**10 / (0.6**10 + 0.4**10), rel=1e-4)
    assert sharp[0, :, 1].tolist() == pytest.approx([0.5, 0.5])


def test_every_network_of_mc_net_learns_from_every_other_one():
    torch.manual_seed(0)
    answers = [torch.rand(1, 2, 4).softmax(1).requires_grad_() for _ in range(3)]
    mutual_error(answers, 0.1).backward()
    targets = [sharpened(answer.detach(), 0.1) for answer in answers]
    for number, answer in enumerate(answers):
        others = [target for other, target in enumerate(targets) if other != number]
        expected = sum(2 * (answer.detach() - target) / answer.numel() for target in others)
        assert torch.allclose(answer.grad, expected)
    method = method_of(MCNet)
    method(first_batch("mc_net"))["loss"].backward()
    assert len(method.learners) == 3 and all(has_gradient(network) for network in method.learners)


# DTC and SASSNet


def test_tasks_of_dtc_agree_where_distances_and_labels_say_the_same():
    method, batch = method_of(DTC), first_batch("dtc")
    with torch.no_grad():
        method.network.classifier.weight.zero_()
        method.network.classifier.bias.copy_(torch.tensor([-20.0, 20.0]))  # foreground everywhere
        head = method.heads.heads["distances"]
        head.weight.zero_()
        head.bias.fill_(-1.0)  # inside everywhere
        agreeing = method(batch)["consistency"]
        head.bias.fill_(1.0)
        contradicting = method(batch)["consistency"]
    assert agreeing < 1e-6 and contradicting > 0.99


def test_discriminator_of_sassnet_learns_and_neither_side_gets_the_other_ones_gradient():
    method, batch = method_of(SASSNet), first_batch("sassnet")
    distances = torch.rand(4, 1, 16, 16, 8, requires_grad=True)
    method.discriminator_loss(distances, batch["image"], 2).backward()
    assert has_gradient(method.discriminator) and distances.grad is None
    method.zero_grad()
    method.adversarial_loss(distances, batch["image"]).backward()
    assert not has_gradient(method.discriminator) and distances.grad.any()


def test_discriminator_of_sassnet_tells_maps_apart_after_some_steps():
    method = method_of(SASSNet)
    images = torch.rand(4, 1, 8, 8, 8)
    maps = torch.cat([-torch.ones(2, 1, 8, 8, 8), torch.ones(2, 1, 8, 8, 8)])
    optimizer = torch.optim.Adam(method.discriminator.parameters(), lr=0.01)
    for _ in range(30):
        optimizer.zero_grad()
        method.discriminator_loss(maps, images, 2).backward()
        optimizer.step()
    answers = method.discriminator(maps, images)
    assert answers[:2].min() > 0 > answers[2:].max()
    before = method.adversarial_loss(maps[2:], images[2:])
    assert before > method.adversarial_loss(maps[:2], images[:2]), "maps that look unlabelled cost more"


# UniMatch


def test_views_of_unimatch_differ_and_all_three_teach():
    method, batch = method_of(UniMatch, UniMatchOptions(threshold=0.0, cutmix=False)), first_batch("unimatch")
    images = []
    method.network.register_forward_pre_hook(lambda _network, inputs: images.append(inputs[0]))
    terms = method(batch)
    _, weak, first, second, dropped = images
    assert not torch.equal(first, second) and not torch.equal(first, weak) and torch.equal(dropped, weak)
    assert all(terms[name] > 0 for name in ("first_view", "second_view", "dropped_features"))
    weighted = 0.25 * terms["first_view"] + 0.25 * terms["second_view"] + 0.5 * terms["dropped_features"]
    supervised = terms["ce"] + 2 * terms["dice"]
    assert terms["loss"].item() == pytest.approx((supervised + weighted).item(), rel=1e-5)


def test_unimatch_learns_from_confident_voxels_only():
    strict = method_of(UniMatch, UniMatchOptions(threshold=1.0))(first_batch("unimatch"))
    assert strict["confident"] == strict["first_view"] == strict["dropped_features"] == 0


def test_second_strong_view_is_drawn_for_each_patch():
    torch.manual_seed(0)
    image = torch.full((2, 1, 8, 8, 8), 0.5)
    changed = changed_again(image)
    assert not torch.allclose(changed[0].mean(), changed[1].mean(), atol=1e-3)
    assert (changed - image).abs().max() <= 0.2 * 0.5 + 0.1 + 0.1 + 1e-6


# LG-ER-MT


def test_local_structure_is_that_of_neighbours():
    foreground = torch.tensor([0.0, 0.0, 1.0, 1.0]).expand(1, 4, 4)
    teacher = torch.stack([1 - foreground, foreground], dim=1)
    swapped = teacher.flip(1)  # other labels, the same structure
    moved = teacher.roll(1, 3)
    assert local_error(teacher, teacher) == local_error(swapped, teacher) == 0 and local_error(moved, teacher) > 0


def test_self_information_is_entropy_by_class_with_finite_gradients():
    probs = torch.tensor([[0.5, 1.0], [0.5, 0.0]]).unsqueeze(0).requires_grad_()
    information = self_information(probs)
    assert information.sum(1).flatten().tolist() == pytest.approx([math.log(2), 0.0], abs=1e-6)
    information.sum().backward()
    assert torch.isfinite(probs.grad).all()


def test_lg_er_mt_is_surer_of_unlabelled_patches_for_its_entropy_term():
    method, batch = method_of(LGERMT), first_batch("lg_er_mt")
    terms = method(batch)
    learnt = terms["consistency"] + terms["local"] + terms["global"] + 0.1 * terms["entropy"]
    expected = terms["ce"] + 2 * terms["dice"] + method.weight_now() * learnt
    assert terms["loss"].item() == pytest.approx(expected.item(), rel=1e-5) and terms["entropy"] > 0


# Reciprocal Learning


def reciprocal():
    method = method_of(ReciprocalLearning, network=small_network(dropout=0.0))
    return method, first_batch("reciprocal_learning")


def test_student_of_reciprocal_learning_gets_the_gradient_of_pseudo_labels_alone():
    method, batch = reciprocal()
    unlabelled = batch["image"][~batch["is_labelled"]]
    labels = method.teacher(unlabelled).argmax(1, keepdim=True)
    expected = torch.autograd.grad(cross_entropy(method.network(unlabelled), labels), list(method.network.parameters()))
    terms = method(batch)
    terms["loss"].backward()
    for parameter, gradient in zip(method.network.parameters(), expected, strict=True):
        assert torch.allclose(parameter.grad, gradient, atol=1e-6)
    assert terms["student"].item() == pytest.approx(cross_entropy(method.network(unlabelled), labels).item(), rel=1e-5)


def test_feedback_is_positive_where_pseudo_labels_are_the_true_ones():
    method, batch = reciprocal()
    image, label = batch["image"][batch["is_labelled"]], batch["label"][batch["is_labelled"]]
    _, right = method.student_loss(image, label)
    _, wrong = method.student_loss(image, 1 - label)
    assert method.feedback(right, image, label) > 0 > method.feedback(wrong, image, label)


def test_teacher_of_reciprocal_learning_starts_from_the_network_and_the_student_is_evaluated():
    network = small_network()
    method = method_of(ReciprocalLearning, network=network)
    assert method.teacher is network and method.evaluated is method.network is not network
    method(first_batch("reciprocal_learning"))["loss"].backward()
    assert has_gradient(method.teacher) and has_gradient(method.network)


# 3D Graph-S2Net


def test_graphs_tell_the_features_of_one_task_what_the_other_one_knows():
    torch.manual_seed(0)
    exchange = GraphExchange(channels=4, axes=3, nodes=3)
    ours, theirs = torch.rand(2, 4, 5, 5, 5), torch.rand(2, 4, 5, 5, 5, requires_grad=True)
    joined, other = exchange(ours, theirs)
    assert joined.shape == other.shape == ours.shape and not torch.equal(joined, ours)
    joined.sum().backward()
    assert theirs.grad.any()
    with torch.no_grad():
        for layer in exchange.messages:
            layer.weight.zero_()
            layer.bias.zero_()
        assert torch.equal(exchange(ours, theirs)[0], ours), "nothing is said: nothing changes"


def test_own_logits_of_graph_s2net_follow_the_teacher_after_the_exchange():
    plain, joint, distances = torch.randn(1, 2, 4), torch.randn(1, 2, 4), torch.randn(1, 1, 4)
    teacher = Answers(plain, joint, distances)
    assert taught_error(Answers(joint, joint, distances), teacher) == 0
    assert taught_error(Answers(plain, joint, distances), teacher) > 0


def test_graph_of_graph_s2net_learns_and_its_average_follows():
    method = method_of(GraphS2Net)
    method(first_batch("graph_s2net"))["loss"].backward()
    assert has_gradient(method.tasks.exchange) and not has_gradient(method.average_tasks)
    with torch.no_grad():
        for parameter in method.tasks.parameters():
            parameter.add_(1.0)
    method.after_step()
    assert torch.equal(weights_of(method.average_tasks), weights_of(method.tasks))
