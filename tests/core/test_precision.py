"""Numbers too small to matter are taken for 0 where that is asked for, and only there."""

import torch

from medssl.core.precision import flushed_denormals


def half_of_the_smallest() -> float:
    return (torch.full((4,), 1e-40) * 0.5)[0].item()


def test_denormals_are_zero_in_the_block_and_come_back_after_it():
    assert half_of_the_smallest() > 0
    with flushed_denormals():
        assert half_of_the_smallest() == 0
        with flushed_denormals():
            pass
        assert half_of_the_smallest() == 0, "the inner block leaves the outer one as it is"
    assert half_of_the_smallest() > 0


def test_they_come_back_after_an_error():
    try:
        with flushed_denormals():
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    assert half_of_the_smallest() > 0
