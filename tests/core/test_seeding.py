"""Seeds: the same parts give the same numbers, any other part gives others."""

import random

import numpy as np
import pytest
import torch

from medssl.core.seeding import derive_seed, seed_everything, seeded


def draw() -> tuple[float, float, float]:
    return random.random(), float(np.random.rand()), float(torch.rand(1))  # noqa: NPY002


def test_same_parts_give_the_same_numbers_in_all_generators():
    seed_everything(3, "epoch", 1)
    first = draw()
    draw()
    seed_everything(3, "epoch", 1)
    assert draw() == first


@pytest.mark.parametrize("other", [(4, "epoch", 1), (3, "step", 1), (3, "epoch", 2), (3, "epoch", 1, 0), (3,)])
def test_another_part_gives_other_numbers_in_all_generators(other):
    seed_everything(3, "epoch", 1)
    first = draw()
    seed_everything(*other)
    assert all(a != b for a, b in zip(first, draw(), strict=True))


def test_derived_seed_is_32_bits_and_stays_the_same_between_versions():
    assert derive_seed(0) == 0x5FECEB66  # first bytes of SHA-256("0")
    assert all(0 <= derive_seed(i, "x") < 2**32 for i in range(100))
    assert len({derive_seed(seed, "epoch", epoch) for seed in range(20) for epoch in range(50)}) == 1000


def test_seeded_block_repeats_and_leaves_the_state_from_before():
    torch.manual_seed(1)
    before = torch.get_rng_state()
    with seeded(0, "scan"):
        inside = torch.rand(3)
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(5)
    with seeded(0, "scan"):
        assert torch.equal(torch.rand(3), inside)


def test_seeded_block_restores_the_state_after_an_error_too():
    before = torch.get_rng_state()
    with pytest.raises(ValueError, match="no"), seeded(0):
        torch.rand(1)
        raise ValueError("no")
    assert torch.equal(torch.get_rng_state(), before)
