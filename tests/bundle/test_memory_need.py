"""The memory of a step is estimated without computing it, and near what a real step takes."""

import gc
import os
from pathlib import Path

import pytest
import torch
from torch import nn

from medssl.bundle.memory_need import training_bytes, weights_bytes
from medssl.networks import MCDropoutUNet3D
from medssl.networks.activations import step_bytes
from medssl.networks.lrl import LRL


def status(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def measured(network, batch):
    """Bytes that a real step of Adam takes at its peak."""
    optimizer = torch.optim.Adam(network.parameters())
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = status("VmRSS")
    output = network(torch.rand(*batch))
    loss = (
        output.mean() if isinstance(network, MCDropoutUNet3D) else output.logits.mean() + output.reconstruction.mean()
    )
    loss.backward()
    optimizer.step()
    return status("VmHWM") - before


def in_a_process(function, *arguments):
    """The number that `function` gives in a fork, whose memory nobody else uses."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        torch.set_num_threads(1)
        os.write(write_end, str(function(*arguments)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write_end)
    with os.fdopen(read_end) as answer:
        return int(answer.read())


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="only Linux tells the peak")
@pytest.mark.parametrize("size", [(48, 48, 16), (80, 80, 24)])
@pytest.mark.parametrize("kind", ["unet", "lrl"])
def test_estimate_is_within_a_factor_of_two_of_a_real_step(kind, size):
    widths = (16, 32)
    network = MCDropoutUNet3D(1, 2, widths=widths) if kind == "unet" else LRL(1, 2, size, widths=widths, latent_dim=16)
    batch = (2, 1, *size)
    estimate = training_bytes([network], [batch], cached=0, with_average=False)
    peak = in_a_process(measured, network, batch)
    assert peak / 2 < estimate < peak * 2


def test_estimate_changes_neither_the_network_nor_the_random_numbers():
    network = MCDropoutUNet3D(1, 2, widths=(4, 8)).eval()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    torch.manual_seed(3)
    step_bytes(network, (2, 1, 16, 16, 8))
    drawn = torch.rand(4)
    torch.manual_seed(3)
    assert torch.equal(drawn, torch.rand(4)) and not network.training
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


def test_more_patches_take_more():
    network = MCDropoutUNet3D(1, 2, widths=(4, 8))
    assert step_bytes(network, (4, 1, 16, 16, 8)) == pytest.approx(2 * step_bytes(network, (2, 1, 16, 16, 8)), rel=0.1)


class LooksAtNumbers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x) if float(x.sum()) > 0 else x


def test_a_network_that_looks_at_numbers_has_no_estimate_and_no_failure():
    assert step_bytes(LooksAtNumbers(), (2, 4)) is None
    assert training_bytes([LooksAtNumbers()], [(2, 4)], cached=0, with_average=False) is None


def test_weights_count_with_gradients_and_moments_and_shared_ones_once():
    network = nn.Linear(10, 10, bias=False)
    frozen = nn.Linear(10, 10, bias=False).requires_grad_(False)
    assert weights_bytes([network]) == 400 * 4 and weights_bytes([network], moments=1) == 400 * 3
    assert weights_bytes([network, network, frozen]) == 400 * 4 + 400
