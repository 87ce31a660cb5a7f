"""NP-SemiSeg's head: counts of the thesis, attention by plain loops, the factored decoder equals the plain one."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from medssl.core.errors import ConfigError
from natural_image_ext.losses import gaussian_kl
from natural_image_ext.networks import NPSegHead, np_seg_head
from natural_image_ext.networks.constant_maps import convolve_constant
from natural_image_ext.networks.np_seg_head import attention, fitted


@pytest.fixture(params=[2, 3])
def dims(request):
    return request.param


def head_of(dims=2, **options):
    torch.manual_seed(0)
    settings = {"hidden": 4, "width": 8, "bank_size": 30, "samples": 3, **options}
    return NPSegHead(6, 3, dims, **settings)


def maps_of(dims, batch=2, seed=1):
    generator = torch.Generator().manual_seed(seed)
    size = (5, 4, 3)[:dims]
    return torch.randn(batch, 6, *size, generator=generator), torch.randint(0, 3, (batch, *size), generator=generator)


@pytest.mark.parametrize(
    ("channels", "classes", "parameters"), [(512, 21, 1944533), (512, 19, 1944019), (304, 21, 1458645)]
)
def test_parameter_counts(channels, classes, parameters):
    assert sum(p.numel() for p in NPSegHead(channels, classes).parameters()) == parameters


def test_inference_gives_t_maps_of_logits(dims):
    features, _ = maps_of(dims)
    output = head_of(dims)(features, samples=7)
    assert output.logits.shape == (7, 2, 3, *features.shape[2:]) and output.mean.shape == output.std.shape == (2, 4)
    assert torch.allclose(output.probs.sum(1), torch.ones_like(output.probs[:, 0]), atol=1e-5)
    assert float(output.std.min()) > 0.1
    assert not torch.allclose(output.logits[0], output.logits[1])


@pytest.mark.parametrize("size", [(5, 4), (1, 6), (2, 2), (3, 1), (4, 3, 5), (1, 1, 2)])
def test_convolution_of_constant_maps_is_the_plain_one(size):
    torch.manual_seed(0)
    convolution = (nn.Conv2d if len(size) == 2 else nn.Conv3d)(4, 6, 3, padding=1, bias=False).double()
    vectors = torch.randn(3, 4, dtype=torch.double, requires_grad=True)
    plain = convolution(vectors[(..., *[None] * len(size))].expand(-1, -1, *size))
    found = convolve_constant(vectors, convolution.weight, size)
    assert (found - plain).abs().max() < 1e-12
    weights = torch.randn_like(plain)
    for expected, given in zip(
        torch.autograd.grad((plain * weights).sum(), [vectors, convolution.weight]),
        torch.autograd.grad((found * weights).sum(), [vectors, convolution.weight]),
        strict=True,
    ):
        assert torch.allclose(expected, given)


def test_factored_decoder_equals_the_plain_one(dims, monkeypatch):
    head = head_of(dims)
    features, _ = maps_of(dims)
    size = features.shape[2:]
    z, context = torch.randn(3, 2, 4), torch.randn(2, 4)
    everywhere = (..., *[None] * dims)
    joined = torch.cat(
        [
            features.expand(3, *features.shape),
            z[everywhere].expand(*z.shape, *size),
            context.expand(3, 2, 4)[everywhere].expand(3, 2, 4, *size),
        ],
        dim=2,
    )
    plain = head.decoder(head.first(joined.flatten(0, 1))).unflatten(0, (3, 2))
    for cached_values in (2**21, 1):  # all samples at once, and one by one
        monkeypatch.setattr(np_seg_head, "CACHED_VALUES", cached_values)
        assert (head.decode(features, z, context) - plain).abs().max() < 1e-5


def test_attention_is_the_softmax_of_minus_the_distance():
    torch.manual_seed(0)
    places, centres = torch.randn(2, 5, 3, dtype=torch.double), torch.randn(4, 3, dtype=torch.double)
    found = attention(places, centres)
    for image in range(2):
        for place in range(5):
            distances = torch.stack([(places[image, place] - centre).norm() for centre in centres])
            assert torch.allclose(found[image, place], torch.softmax(-distances, 0))


def test_attention_has_a_gradient_on_a_centre():
    places = torch.zeros(1, 1, 2, requires_grad=True)
    attention(places, torch.zeros(2, 2)).sum().backward()
    assert places.grad.isfinite().all()


def test_released_and_mean_aggregators_are_their_formulas():
    torch.manual_seed(0)
    reduced, centres = torch.randn(2, 4, 3, 3), torch.randn(3, 4)
    channelwise = head_of(aggregator="per_channel").described(reduced, centres)
    expected = torch.zeros(2, 4)
    for image in range(2):
        for row in range(3):
            for column in range(3):
                for channel in range(4):
                    apart = (reduced[image, channel, row, column] - centres[:, channel]).square()
                    weights = torch.softmax(-apart, 0)
                    expected[image, channel] += (weights * centres[:, channel]).sum() / 9
    assert torch.allclose(channelwise, expected, atol=1e-6)
    assert torch.allclose(head_of(aggregator="mean").described(reduced, centres), centres.mean(0).expand(2, 4))
    with pytest.raises(ConfigError, match="'max' is unknown"):
        head_of(aggregator="max")


def test_kl_of_the_latents_has_the_golden_value():
    context = torch.tensor([0.5, -1.0]), torch.tensor([0.5, 1.0])
    target = torch.tensor([1.5, 0.25]), torch.tensor([1.0, 0.7])
    found = gaussian_kl(target[0], target[1].square(), context[0], context[1].square())
    assert float(found) == pytest.approx(3.6897777634, abs=1e-5)


def test_training_mode_writes_the_banks_and_evaluation_does_not(dims):
    head = head_of(dims)
    features, labels = maps_of(dims)
    output = head.condition(features, labels, features, labels)
    assert output.logits.shape[0] == 3 and output.context_mean.shape == (2, 4)
    counted = [1 + int((labels == label).sum()) for label in range(3)]
    assert head.latent_banks.counts.tolist() == head.context_banks.counts.tolist() == [min(n, 30) for n in counted]
    before = head.latent_banks.rows.clone()
    head.eval().condition(features, labels, features, labels)
    assert torch.equal(head.latent_banks.rows, before)


def test_order_of_the_images_changes_nothing(dims):
    head = head_of(dims).eval()
    features, labels = maps_of(dims, batch=3)
    head.train().condition(features, labels, features, labels)
    head.eval()
    order = torch.tensor([2, 0, 1])
    straight, turned = head(features), head(features[order])
    assert torch.allclose(straight.mean[order], turned.mean, atol=1e-6)


def test_all_parameters_learn_and_features_learn_through_the_decoder(dims):
    for aggregator in ("attention", "per_channel", "mean"):
        head = head_of(dims, aggregator=aggregator)
        features, labels = maps_of(dims)
        features.requires_grad_()
        head.condition(features, labels, features, labels)  # centres of zeros have nothing to attend to
        output = head.condition(features, labels, features, labels)
        loss = F.cross_entropy(output.mean_logits, labels)
        kl = gaussian_kl(output.mean, output.std.square(), output.context_mean, output.context_std.square())
        (loss + kl.mean()).backward()
        assert features.grad.abs().sum() > 0
        assert all(p.grad is not None for p in head.parameters())
        if aggregator != "mean":
            assert all(p.grad.abs().sum() > 0 for name, p in head.named_parameters() if name.endswith("weight"))


def test_labels_of_another_resolution_are_fitted(dims):
    maps, labels = maps_of(dims)
    fine = labels
    for dimension in range(1, dims + 1):
        fine = fine.repeat_interleave(2, dimension)
    assert torch.equal(fitted(fine, maps), labels)


def test_inference_copy_predicts_the_same_with_centres_alone(dims):
    head = head_of(dims)
    features, labels = maps_of(dims)
    head.condition(features, labels, features, labels)
    small = head.eval().for_inference()
    assert small.latent_banks.rows.shape[1] == 1 and head.latent_banks.rows.shape[1] == 30
    outputs = []
    for side in (head, small):
        torch.manual_seed(5)
        outputs.append(side(features).logits)
    assert torch.allclose(*outputs, atol=1e-6)


def test_latents_are_drawn_with_their_standard_deviation(dims, monkeypatch):
    head = head_of(dims)
    features, _ = maps_of(dims)
    drawn = []
    monkeypatch.setattr(head, "decode", lambda features, z, context: drawn.append(z) or features[None])
    monkeypatch.setattr(torch, "randn", torch.ones)
    output = head(features, samples=2)
    assert drawn[0].shape == (2, 2, 4) and torch.allclose(drawn[0], (output.mean + output.std).expand(2, 2, 4))
    assert torch.equal(head(features, samples=0).mean, drawn[1][0])


def test_targets_fill_the_banks_of_the_latents_and_context_those_of_the_deterministic_path(dims):
    head = head_of(dims)
    features, labels = maps_of(dims)
    head.condition(features[:1], torch.zeros_like(labels[:1]), features, torch.ones_like(labels))
    places = labels[0].numel()
    assert head.context_banks.counts.tolist() == [min(30, 1 + places), 1, 1]
    assert head.latent_banks.counts.tolist() == [1, min(30, 1 + 2 * places), 1]


def with_different_banks(dims):
    head = head_of(dims)
    for number, banks in enumerate((head.latent_banks, head.context_banks)):
        torch.manual_seed(number)
        banks.write(torch.randn(2, 4, 5, 5) + 3 * number, torch.randint(0, 3, (2, 5, 5)))
    return head.eval()


def test_latents_come_from_their_banks_and_context_from_its_own(dims, monkeypatch):
    head = with_different_banks(dims)
    features, labels = maps_of(dims)
    contexts = []
    monkeypatch.setattr(head, "decode", lambda features, z, context: contexts.append(context) or features[None])
    reduced = head.reduce(features)
    mean, _ = head.latent_of(head.described(reduced, head.latent_banks.centres()))
    context = head.described(reduced, head.context_banks.centres())
    assert not torch.allclose(mean, head.latent_of(context)[0], atol=1e-3)
    for output in (head(features), head.condition(features, labels, features, labels)):
        assert torch.allclose(output.mean, mean) and torch.allclose(contexts.pop(), context)
    assert torch.allclose(output.context_mean, head.latent_of(context)[0])


def test_features_get_no_gradient_from_the_latents(dims):
    head = with_different_banks(dims)
    features, labels = maps_of(dims)
    features.requires_grad_()
    for output in (head(features), head.condition(features, labels, features, labels)):
        for value in (output.mean, output.std):
            assert torch.autograd.grad(value.sum(), features, retain_graph=True, allow_unused=True) == (None,)
        (through_decoder,) = torch.autograd.grad(output.logits.square().sum(), features)
        assert through_decoder.abs().sum() > 0


def test_context_is_reduced_for_the_banks_alone_and_without_a_graph():
    head = head_of()
    features, labels = maps_of(2)
    graphs = []
    head.reduce.register_forward_hook(lambda module, given, found: graphs.append(found.requires_grad))
    head.condition(features, labels, features, labels)
    assert graphs == [True, False]
    head.eval().condition(features, labels, features, labels)
    assert graphs == [True, False, True]
