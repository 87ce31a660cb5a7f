"""The memory of a step is estimated without computing it, and near what a real step takes."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from medssl.bundle.memory_need import training_bytes, weights_bytes
from medssl.networks import MCDropoutUNet3D
from medssl.networks.activations import step_bytes
from medssl.networks.lrl import LRL

SIZES = [(48, 48, 16), (80, 80, 24)]
KINDS = ["unet", "lrl"]
WIDTHS = (16, 32)


def network_of(kind, size):
    return LRL(1, 2, size, widths=WIDTHS, latent_dim=16) if kind == "lrl" else MCDropoutUNet3D(1, 2, widths=WIDTHS)


def status(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def print_peak(kind, size):
    """Print the bytes that a real step of Adam takes at its peak."""
    network = network_of(kind, size)
    optimizer = torch.optim.Adam(network.parameters())
    before = status("VmRSS")
    output = network(torch.rand(2, 1, *size))
    outputs = [output.logits, output.reconstruction] if kind == "lrl" else [output]
    sum(tensor.mean() for tensor in outputs).backward()
    optimizer.step()
    print(status("VmHWM") - before, flush=True)


def print_peaks():
    """All peaks, each measured in a fork of this process, which has used no memory yet."""
    torch.set_num_threads(1)
    for kind, size in itertools.product(KINDS, SIZES):
        child = os.fork()
        if child == 0:
            print_peak(kind, size)
            os._exit(0)
        os.waitpid(child, 0)


@pytest.fixture(scope="module")
def peaks():
    """(kind, size) -> bytes of a real step, of a process of its own: memory that tests gave back would hide them."""
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=True, timeout=300)
    return dict(zip(itertools.product(KINDS, SIZES), map(int, done.stdout.split()), strict=True))


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="only Linux tells the peak")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_estimate_is_within_a_factor_of_two_of_a_real_step(kind, size, peaks):
    estimate = training_bytes([network_of(kind, size)], [(2, 1, *size)], cached=0, with_average=False)
    assert peaks[kind, size] / 2 < estimate < peaks[kind, size] * 2


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


if __name__ == "__main__":
    print_peaks()
