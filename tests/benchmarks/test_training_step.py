"""The profile of a step names the kinds of its operations; no time is asserted."""

import pytest


@pytest.mark.parametrize(
    ("operation", "kind"),
    [
        ("aten::mkldnn_convolution", "convolution, forward"),
        ("aten::slow_conv3d_forward", "convolution, forward"),
        ("aten::convolution_backward", "convolution, backward"),
        ("aten::native_batch_norm_backward", "instance norm"),
        ("aten::upsample_trilinear3d", "upsampling"),
        ("aten::_fused_adam_", "optimiser"),
        ("Optimizer.step#Adam.step", "optimiser"),
        ("aten::bernoulli_", "dropout"),
        ("aten::copy_", "copies"),
        ("aten::arange", "other"),
    ],
)
def test_operations_have_a_kind(benchmark, operation, kind):
    assert benchmark.kind_of(operation) == kind


def test_costs_of_a_tiny_step_add_up(benchmark):
    found = benchmark.costs(benchmark.Size("tiny", (2, 4), (8, 8, 4)), steps=2)
    assert sum(found.shares.values()) == pytest.approx(1)
    assert {"convolution, forward", "convolution, backward", "optimiser"} <= set(found.shares)
    assert found.line("tiny").startswith("- tiny step ") and "waiting for data" in found.line("tiny")
