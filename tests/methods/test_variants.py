"""A variant changes what its name says, and nothing else."""

import pytest
import torch

from medssl.core.errors import ConfigError
from medssl.distributions.gaussian import IndependentGaussians
from medssl.losses import DiceCE
from medssl.methods import (
    VARIANTS,
    LatentLearning,
    PseudoLabels,
    TeacherLearning,
    UNetTeacher,
    build_first_stage,
    build_second_stage,
    build_teacher,
    gbdl_variant,
)
from medssl.networks import LRL, MCDropoutUNet3D

SMALL = {"in_channels": 1, "out_channels": 2, "patch_size": (16, 16, 4), "widths": (4, 8, 8), "latent_dim": 5}


def built(name):
    variant = gbdl_variant(name)
    posterior = MCDropoutUNet3D(1, 2, (4, 8))
    teacher = build_teacher(variant, posterior, **SMALL)
    first = build_first_stage(variant, teacher, DiceCE(), mse_weight=1.0, kl_weight=0.005, kl="product")
    second = build_second_stage(variant, posterior, PseudoLabels(teacher, 2), DiceCE(), pseudo="soft")
    return teacher, first, second


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_takes_a_step_of_both_stages(name):
    torch.manual_seed(0)
    _, first, second = built(name)
    label = torch.randint(0, 2, (2, 1, 16, 16, 4), dtype=torch.uint8)
    batch = {"image": torch.randn(2, 1, 16, 16, 4), "label": label, "is_labelled": torch.tensor([True, False])}
    for method in (first, second):
        loss = method.train()(batch)["loss"]
        loss.backward()
        assert torch.isfinite(loss)
        assert method.network.classifier.weight.grad.abs().sum() > 0


def test_titles_tell_all_variants_apart():
    titles = [variant.title for variant in VARIANTS.values()]
    assert len(set(titles)) == len(titles)


def test_thesis_defaults_are_the_variant_gbdl():
    teacher, first, second = built("gbdl")
    assert isinstance(teacher, LRL) and teacher.latent_kind == "slices" and teacher.v_bound is None
    assert isinstance(first, LatentLearning) and (first.kl, first.kl_weight, first.mse_weight) == (
        "product",
        0.005,
        1.0,
    )
    assert second.pseudo == "soft" and not second.weigh_by_entropy


def test_tables_of_the_thesis_by_one_key():
    assert built("volume")[0].latent_kind == "volume"
    assert isinstance(built("ic")[0](torch.randn(2, 1, 16, 16, 4)).latent, IndependentGaussians)
    assert built("no_mse")[0].image_decoder is None
    assert built("no_kl")[1].kl_weight == 0
    shared = built("shared_encoder")[0]
    assert shared.label_encoder is shared.image_encoder
    decoders = built("shared_decoder")[0]
    assert decoders.label_decoder.blocks[1] is decoders.image_decoder.blocks[1]


def test_self_training_has_a_network_like_the_posterior_as_its_teacher():
    teacher, first, second = built("self_training")
    assert isinstance(teacher, UNetTeacher) and isinstance(first, TeacherLearning)
    assert teacher is not second.network and teacher.arguments == second.network.arguments


def test_variants_are_joined_with_a_plus():
    teacher, first, second = built("bounded_v+sum_kl+hard_labels")
    assert teacher.v_bound == 1.0 and first.kl == "sum" and second.pseudo == "hard"
    assert gbdl_variant("bounded_v+hard_labels").title == "GBDL, bounded v, hard labels"


def test_unknown_variant_is_refused_with_the_known_names():
    with pytest.raises(ConfigError, match=r"'magic' is unknown.*self_training"):
        gbdl_variant("gbdl+magic")


@pytest.mark.parametrize("name", ["volume+ic", "self_training+bounded_v", "sum_kl+self_training"])
def test_variants_that_contradict_each_other_are_refused(name):
    with pytest.raises(ConfigError, match=r"both change|only options of the second stage"):
        gbdl_variant(name)


@pytest.mark.parametrize("name", ["no_z+sum_kl", "no_mse+no_image_skips", "ic+released"])
def test_variants_that_would_do_nothing_are_refused(name):
    with pytest.raises(ConfigError, match="cannot be built"):
        built(name)


def test_first_stage_of_another_latent_is_refused():
    with pytest.raises(ValueError, match="LRL was trained with"):
        built("bounded_v")[0].load_state_dict(built("gbdl")[0].state_dict())
