"""The neural-process head and its banks: counts, modes, exchangeability, memory."""

import pytest
import torch
from torch.nn import functional as F

from medssl.core.errors import ConfigError
from natural_image_ext.inference import SampledInferer
from natural_image_ext.networks import Classifier, MemoryBank, NPHead


@pytest.fixture
def head():
    torch.manual_seed(0)
    return NPHead(12, 3, hidden=4, samples=5, bank_size=7)


def points(count, seed=1):
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(count, 12, generator=generator)
    return features, F.one_hot(torch.randint(0, 3, (count,), generator=generator), 3).float()


@pytest.mark.parametrize(
    ("features", "classes", "hidden", "parameters"),
    [(128, 10, None, 57_738), (512, 100, None, 963_684), (256, 10, None, 226_058), (2048, 1000, 256, 13_446_120)],
)
def test_parameter_counts(features, classes, hidden, parameters):
    assert sum(p.numel() for p in NPHead(features, classes, hidden).parameters()) == parameters


def test_inference_gives_one_prediction_for_each_latent_vector(head):
    found = head(points(6)[0])
    assert found.logits.shape == (5, 6, 3) and found.mean.shape == found.std.shape == (4,)
    assert head(points(6)[0], samples=9).logits.shape == (9, 6, 3)
    assert (found.std > 0.1).all() and torch.equal(found.variance, found.std**2)


def test_decoding_in_parts_equals_the_joined_vector(head):
    features, z, context = points(6)[0], torch.randn(5, 4), torch.randn(4)
    joined = torch.cat([z[:, None].expand(5, 6, 4), features.expand(5, 6, 12), context.expand(5, 6, 4)], dim=-1)
    expected = head.classifier(head.decoder(joined))
    assert torch.allclose(head.decode(features, z, context), expected, atol=1e-6)


def test_standard_deviation_golden_s1(head):
    for value, expected in ((0.0, 0.7238324625), (1.0, 1.2819355188), (-5.0, 0.1060438136)):
        head.to_std = torch.nn.Identity()
        assert head.latent_of(torch.full((4,), value))[1][0].item() == pytest.approx(expected, abs=1e-6)


def test_order_of_context_and_target_points_changes_nothing(head):
    context, context_labels = points(5, 2)
    target, target_labels = points(6, 3)
    order, other = torch.randperm(5), torch.randperm(6)
    torch.manual_seed(4)
    first = head.condition(context, context_labels, target, target_labels)
    torch.manual_seed(4)
    second = head.condition(context[order], context_labels[order], target[other], target_labels[other])
    assert torch.allclose(first.mean, second.mean, atol=1e-6) and torch.allclose(first.std, second.std, atol=1e-6)
    assert torch.allclose(first.logits[:, other], second.logits, atol=1e-5)


def test_training_mode_writes_nothing_until_told_and_then_once(head):
    found = head.condition(*points(2, 2), *points(3, 3))
    assert head.latent_bank.count == 1 and head.deterministic_bank.count == 1
    head.remember(found.context, found.target)
    assert head.latent_bank.count == 4 and head.deterministic_bank.count == 3
    assert not head.latent_bank.rows.requires_grad


def test_reloaded_head_predicts_the_same(head):
    found = head.condition(*points(2, 2), *points(3, 3))
    head.remember(found.context, found.target)
    restored = NPHead(12, 3, hidden=4, samples=5, bank_size=7)
    restored.load_state_dict(head.state_dict())
    features = points(6)[0]
    outputs = []
    for each in (head, restored, head.for_inference()):
        torch.manual_seed(5)
        outputs.append(each(features).logits)
    assert torch.equal(outputs[0], outputs[1]) and torch.allclose(outputs[0], outputs[2], atol=1e-6)
    assert len(head.for_inference().latent_bank.rows) == 1 and len(head.latent_bank.rows) == 7


def test_labels_of_the_targets_reach_the_latent_and_those_of_the_context_the_prediction(head):
    (context, labels), (target, targets) = points(5, 2), points(6, 3)
    first = head.condition(context, labels, target, targets)
    assert not torch.allclose(first.mean, head.condition(context, labels, target, targets.roll(1, 1)).mean)
    assert torch.equal(first.mean, head.condition(context, labels.roll(1, 1), target, targets).mean)


def test_bank_is_first_in_first_out():
    bank = MemoryBank(4, 1)
    stored = [bank.rows[0].item()]
    for step in range(6):
        written = torch.tensor([[10.0 * step], [10.0 * step + 1]])
        bank.write(written)
        stored += written.flatten().tolist()
        kept = stored[-4:]
        assert bank.count == len(kept)
        assert sorted(bank.rows[: int(bank.count), 0].tolist()) == pytest.approx(sorted(kept))
        assert bank.mean().item() == pytest.approx(sum(kept) / len(kept))


def test_more_vectors_than_fit_leave_the_last_ones():
    bank = MemoryBank(3, 2)
    bank.write(torch.arange(10.0).reshape(5, 2))
    assert sorted(bank.rows[:, 0].tolist()) == [4.0, 6.0, 8.0] and bank.count == 3


def test_bank_without_room_is_refused():
    with pytest.raises(ValueError, match="size 0"):
        MemoryBank(0, 2)


def write_in_group(rank, folder):
    torch.manual_seed(0)
    bank = MemoryBank(6, 2)
    bank.write(torch.full((1 + rank, 2), 10.0 + rank))
    torch.save(bank.state_dict(), folder / f"{rank}.pt")


def test_banks_of_two_processes_hold_the_same_though_they_wrote_different_numbers(run_in_group, tmp_path):
    assert run_in_group(write_in_group, tmp_path) == [0, 0]
    first, second = (torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in (0, 1))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert first["count"] == 4 and first["rows"][1:4, 0].tolist() == [10.0, 11.0, 11.0]


def test_sigmoid_gives_every_class_a_probability_of_its_own():
    torch.manual_seed(0)
    head = NPHead(6, 3, hidden=4, samples=5, bank_size=4, activation="sigmoid")
    output = head(torch.randn(2, 6))
    assert torch.allclose(output.probs, torch.sigmoid(output.logits).mean(0))
    with pytest.raises(ConfigError, match="'tanh' is unknown"):
        NPHead(6, 3, activation="tanh")


def test_the_default_decoder_is_the_thesis_one():
    names = set(NPHead(12, 3, hidden=4).state_dict())
    assert not any("norm" in name for name in names)
    assert {"decoder.0.weight", "decoder.2.weight", "classifier.weight"} <= names


def test_width_norm_and_dropout_regularise_the_decoder():
    torch.manual_seed(0)
    head = NPHead(12, 3, hidden=4, samples=5, norm="layer", dropout=0.5, width=6)
    assert head.decoder[0].out_features == head.decoder[2].out_features == head.classifier.in_features == 6
    features, z, context = points(6)[0], torch.randn(5, 4), torch.randn(4)
    joined = torch.cat([z[:, None].expand(5, 6, 4), features.expand(5, 6, 12), context.expand(5, 6, 4)], dim=-1)
    first = F.leaky_relu(head.decoder_norms[0](head.decoder[0](joined)), 0.1)
    second = F.leaky_relu(head.decoder_norms[1](head.decoder[2](first)), 0.1)
    expected = head.eval().classifier(second)
    assert torch.allclose(head.decode(features, z, context), expected, atol=1e-5)
    assert not torch.allclose(head.train().decode(features, z, context), expected, atol=1e-5), "dropout in training"


def test_dropout_of_the_head_is_no_monte_carlo_dropout():
    torch.manual_seed(0)
    network = Classifier(torch.nn.Identity(), NPHead(12, 3, hidden=4, samples=5, dropout=0.5)).eval()
    features = points(6)[0]
    torch.manual_seed(1)
    plain = network.head(features, 5).sample_probs.mean(0)
    torch.manual_seed(1)
    assert torch.equal(SampledInferer(5)(features, network), plain)


def test_an_unknown_norm_is_refused():
    with pytest.raises(ConfigError, match=r"head_norm 'batch' is unknown\. Known: none, layer"):
        NPHead(12, 3, norm="batch")


def test_uncertainty_of_sigmoid_is_the_variance_of_the_draws_summed_over_classes():
    torch.manual_seed(0)
    head = NPHead(12, 3, hidden=4, samples=5, activation="sigmoid")
    found = head(points(6)[0])
    draws = torch.sigmoid(found.logits)
    expected = ((draws - draws.mean(0)) ** 2).mean(0).sum(-1)
    assert torch.allclose(found.uncertainty, expected, atol=1e-6) and found.uncertainty.shape == (6,)
