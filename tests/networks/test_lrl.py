"""LRL: parameter counts, slices that stay slices, and every variant of the thesis and of the released code."""

import pytest
import torch

from medssl.distributions import IndependentGaussians, RankOneGaussians
from medssl.networks import LRL
from medssl.networks.latent import FlattenSlices, VectorToSlice, bounded

SMALL = {"patch_size": (32, 48, 8), "widths": (4, 8, 16), "latent_dim": 6}


def count(network):
    return sum(parameter.numel() for parameter in network.parameters())


@pytest.fixture
def image():
    return torch.rand(2, 1, 32, 48, 5, generator=torch.Generator().manual_seed(0))


def test_released_variant_has_the_released_number_of_parameters_without_its_unused_layer():
    with torch.device("meta"):
        released = LRL(3, 2, shared_head=True, label_bottleneck=True, last_kernel=1)
    assert count(released) == 146_591_557 - 2_097_408


def test_thesis_variant_has_its_own_head_convolutions_and_no_label_bottleneck():
    with torch.device("meta"):
        thesis, shared = LRL(3, 2), LRL(3, 2, shared_head=True)
    assert count(thesis) == 137_934_917
    assert count(thesis) - count(shared) == 512 * 512 * 9 + 512


def test_flattened_slices_come_back_in_place():
    maps = torch.arange(2 * 8 * 3 * 2 * 4).reshape(2, 8, 3, 2, 4).float()
    back = VectorToSlice(8, (6, 4), 5).unflatten(FlattenSlices()(maps))
    assert torch.equal(back, maps)


def test_a_change_of_one_slices_latent_changes_that_slices_map_only():
    to_map = VectorToSlice(8, (6, 4), 5)
    z = torch.randn(1, 4, 5)
    changed = z.clone()
    changed[:, 2] += 1
    difference = (to_map(changed) - to_map(z)).abs().amax((0, 1, 2, 3))
    assert (difference > 0).tolist() == [False, False, True, False]


def test_each_slice_has_its_own_latent():
    network = LRL(1, 2, **SMALL)
    bottom = torch.randn(1, 16, 8, 12, 5)
    changed = bottom.clone()
    changed[..., 3] += 1
    moved = (network.latent_of(changed).mean - network.latent_of(bottom).mean).abs().amax((0, 2))
    assert (moved > 0).tolist() == [False, False, False, True, False]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"latent": "volume"},
        {"latent": "independent"},
        {"covariance": "released", "c": 10.0},
        {"with_reconstruction": False},
        {"shared_encoder": True},
        {"shared_decoder": True},
        {"with_z": False},
        {"label_bottleneck": True},
        {"shared_head": True},
        {"last_kernel": 1},
        {"v_bound": 1.0},
    ],
    ids=str,
)
def test_every_variant_gives_labels_latents_and_a_reconstruction_and_learns(options, image):
    network = LRL(1, 3, **SMALL, **options)
    output = network(image)
    assert output.logits.shape == (2, 3, 32, 48, 5)
    slices = 1 if options.get("latent") == "volume" else 5
    assert output.latent.mean.shape == (2, slices, 6)
    kinds = {"independent": IndependentGaussians}
    assert isinstance(output.latent, kinds.get(options.get("latent"), RankOneGaussians))
    loss = output.logits.square().mean() + output.latent.product_kl().mean()
    if options.get("with_reconstruction", True):
        assert output.reconstruction.shape == image.shape and output.reconstruction.abs().max() <= 1
        loss = loss + output.reconstruction.square().mean()
    else:
        assert output.reconstruction is None
    loss.backward()
    silent = {name for name, p in network.named_parameters() if p.grad is None}
    expected = {n for n in silent if n.startswith("to_map")} if not options.get("with_reconstruction", True) else set()
    assert silent == expected


def test_label_branch_sees_z_unless_it_is_left_out(image):
    for with_z in (True, False):
        torch.manual_seed(0)
        network = LRL(1, 2, **SMALL, with_z=with_z).eval()
        samples = network.pseudo_label_samples(image, 3)
        assert samples.shape == (3, 2, 2, 32, 48, 5)
        assert torch.allclose(samples.sum(2), torch.ones(3, 2, 32, 48, 5), atol=1e-5)
        assert torch.equal(samples[0], samples[1]) is not with_z


def test_one_latent_of_the_volume_is_given_to_every_slice(image):
    network = LRL(1, 2, **SMALL, latent="volume")
    maps = network.map_of(network.latent_of(torch.randn(1, 16, 8, 12, 5)).sample(), 5)
    assert maps.shape[-1] == 5 and torch.allclose(maps[..., :1].expand_as(maps), maps, atol=1e-6)


def test_bound_limits_the_length_of_v():
    v = 100 * torch.randn(3, 4, 16)
    assert bounded(v, 0.5).norm(dim=-1).max() <= 0.5 + 1e-6
    assert bounded(v, None) is v


def test_unknown_latent_is_refused():
    with pytest.raises(ValueError, match="slices, volume or independent"):
        LRL(1, 2, **SMALL, latent="voxels")


def test_only_the_asked_patches_get_logits_and_the_rest_is_the_same(image):
    network = LRL(1, 2, **SMALL).eval()
    torch.manual_seed(3)
    whole = network(image)
    torch.manual_seed(3)
    part = network(image, torch.tensor([False, True]))
    assert torch.allclose(part.logits, whole.logits[1:], atol=1e-5)
    assert torch.equal(part.reconstruction, whole.reconstruction) and torch.equal(part.latent.mean, whole.latent.mean)


def test_without_skips_nothing_but_the_coarsest_map_reaches_the_output(image):
    network = LRL(1, 2, **SMALL, label_skips=False, image_skips=False).eval()
    features = network.image_encoder(image)
    bottom = torch.randn(2, 16, 8, 12, 5)
    other = [torch.randn_like(feature) for feature in features]
    assert torch.equal(network.image_decoder(bottom, features), network.image_decoder(bottom, other))
    assert network.label_decoder.blocks[0][0].in_channels == 2 * 16


def test_coarse_reconstruction_is_painted_two_times_smaller_in_plane(image):
    found = LRL(1, 2, **SMALL, reconstruction_level=1)(image)
    assert found.reconstruction.shape == (2, 1, 16, 24, 5) and found.logits.shape == (2, 2, 32, 48, 5)
    with pytest.raises(ValueError, match="reconstruction_level 2"):
        LRL(1, 2, **SMALL, reconstruction_level=2)


def test_draws_in_one_batch_are_those_of_a_loop(image):
    network = LRL(1, 2, **SMALL).eval()
    torch.manual_seed(5)
    draws = network.pseudo_label_samples(image, 3)
    torch.manual_seed(5)
    latent = network.latent_of(network.image_encoder(image)[-1])
    features = network.label_encoder(image)
    for draw in draws:
        logits = network.label_logits(features, network.map_of(latent.sample(), 5))
        assert torch.allclose(draw, torch.softmax(logits, dim=1), atol=1e-5)


def test_single_patch_has_the_draws_it_has_in_a_batch(image):
    network = LRL(1, 2, **SMALL, with_z=False).eval()
    both = network.pseudo_label_samples(image, 2)
    assert torch.allclose(network.pseudo_label_samples(image[:1], 2), both[:, :1], atol=1e-5)


def test_labels_from_z_alone_do_not_see_encoder_2(image):
    network = LRL(1, 2, **SMALL, label_skips=False, with_label_features=False).eval()
    z_map = torch.randn(2, 16, 8, 12, 5)
    features = network.label_encoder(image)
    other = [torch.randn_like(feature) for feature in features]
    assert torch.equal(network.label_logits(features, z_map), network.label_logits(other, z_map))


def test_unused_latent_is_not_computed_and_not_trained(image):
    network = LRL(1, 2, **SMALL, with_z=False, with_reconstruction=False)
    found = network(image)
    assert found.latent is None and found.reconstruction is None
    found.logits.sum().backward()
    assert all(p.grad is not None for p in network.parameters() if p.requires_grad)


@pytest.mark.parametrize("samples", [1, 3, 9])
def test_number_of_draws_is_what_was_asked_for(samples, image):
    assert LRL(1, 2, **SMALL).pseudo_label_samples(image, samples).shape == (samples, 2, 2, 32, 48, 5)


def test_shared_decoders_are_one_from_the_second_block_on():
    network = LRL(1, 2, **SMALL, shared_decoder=True)
    label, image = network.label_decoder.blocks, network.image_decoder.blocks
    assert label[0] is not image[0] and all(label[level] is image[level] for level in range(1, len(label)))
    assert count(LRL(1, 2, **SMALL)) - count(network) == count(label[1])
    with pytest.raises(ValueError, match="same skips"):
        LRL(1, 2, **SMALL, shared_decoder=True, image_skips=False)
    with pytest.raises(ValueError, match="LRL was trained with"):
        network.load_state_dict(LRL(1, 2, **SMALL).state_dict())


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_latents_are_computed_in_float32_in_mixed_precision(half):
    network = LRL(1, 2, **SMALL)
    bottom = torch.randn(1, 16, 8, 12, 5)
    with torch.autocast("cpu", dtype=half):
        latent = network.latent_of(bottom)
        rows = network.to_v.flatten(network.to_v.shrink(bottom))
    assert rows.dtype is half and latent.v.dtype is latent.mean.dtype is torch.float32
    assert torch.equal(latent.v, network.to_v.linear(rows.float()))
    assert not torch.equal(latent.v, latent.v.to(half).float())


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_a_latent_beyond_the_range_of_float16_still_gives_finite_maps(half):
    network = LRL(1, 2, **SMALL)
    bottom = torch.randn(1, 16, 8, 12, 5)
    with torch.no_grad():
        network.to_v.linear.bias.fill_(300.0)  # v.v = 540,000
        with torch.autocast("cpu", dtype=half):
            latent = network.latent_of(bottom)
            z = latent.sample()
            z_map = network.map_of(z, 5)
    assert z.abs().max() > torch.finfo(torch.float16).max
    assert z_map.dtype is torch.float32 and z_map.isfinite().all()
    assert torch.equal(z_map, network.map_of(z, 5))  # as without mixed precision
    assert latent.product_kl().isfinite().all()
