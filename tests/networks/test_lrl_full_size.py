"""GBDL at the thesis' full size on a CPU: LRL and both stages take one step on patches of 128x128x32.

Each part runs in a process of its own, `python tests/networks/test_lrl_full_size.py PART`, so that the peak of memory
it prints is that of the part. With pytest they are seen with `-s`.
"""

import json
import math
import resource
import subprocess
import sys
import time

import pytest
import torch
from torch import nn

from medssl.losses import DiceCE
from medssl.methods import LatentLearning, PosteriorLearning, PseudoLabels
from medssl.networks import LRL, MCDropoutUNet3D

pytestmark = [pytest.mark.slow, pytest.mark.timeout(5400)]
PATCH = (128, 128, 32)


def batch_of_two():
    """A labelled patch and an unlabelled one, with a block to be found."""
    label = torch.zeros(2, 1, *PATCH, dtype=torch.uint8)
    label[..., 40:90, 30:80, 8:24] = 1
    image = 1.2 * label - 0.6 + 0.1 * torch.randn(2, 1, *PATCH)
    return {"image": image, "label": label, "is_labelled": torch.tensor([True, False])}


def norms(module: nn.Module):
    return {n: torch.linalg.vector_norm(p.detach(), dtype=torch.float64).item() for n, p in module.named_parameters()}


def step(method: nn.Module):
    """One step of Adam; returns the losses, and which of the method's parameters did not change."""
    method.train()
    optimiser = torch.optim.Adam([p for p in method.parameters() if p.requires_grad], lr=1e-4)
    before = norms(method)
    losses = method(batch_of_two())
    losses["loss"].backward()
    optimiser.step()
    after = norms(method)
    return {
        "losses": {name: value.item() for name, value in losses.items()},
        "parameters": sum(p.numel() for p in method.parameters()),
        "unchanged": [name for name in before if before[name] == after[name]],
        "finite": all(math.isfinite(norm) for norm in after.values()),
    }


def forward():
    network = LRL().eval()
    with torch.no_grad():
        output = network(batch_of_two()["image"][:1])
    tensors = {
        "logits": output.logits,
        "mean": output.latent.mean,
        "v": output.latent.v,
        "image": output.reconstruction,
    }
    return {
        "shapes": {name: list(tensor.shape) for name, tensor in tensors.items()},
        "finite": all(tensor.isfinite().all().item() for tensor in tensors.values()),
    }


def stage_1():
    return step(LatentLearning(LRL(), DiceCE()))


def stage_2():
    teacher = LRL()
    before = norms(teacher)
    found = step(PosteriorLearning(MCDropoutUNet3D(), PseudoLabels(teacher, samples=5), DiceCE()))
    return {**found, "teacher_unchanged": norms(teacher) == before}


PARTS = {part.__name__: part for part in (forward, stage_1, stage_2)}


def found_by(part: str):
    """What a part found, run in its own process; prints its memory and time."""
    done = subprocess.run([sys.executable, __file__, part], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:] or f"ended with {done.returncode}: out of memory?"
    found = json.loads(done.stdout.splitlines()[-1])
    print(f"\n{part}: peak {found['peak_gib']:.1f} GiB, {found['wall_s']:.0f} s ({found['cpu_s']:.0f} s CPU)")
    return found


def test_full_size_has_the_stated_number_of_parameters():
    with torch.device("meta"):
        one, three = (sum(p.numel() for p in LRL(channels, 2, PATCH).parameters()) for channels in (1, 3))
    assert three == 137_934_917
    # two channels fewer into both encoders' first convolution and out of the painter
    assert one == three - 2 * (2 * 64 * 27) - 2 * (64 * 27 + 1) == 137_924_547


def test_forward_gives_labels_reconstruction_and_a_latent_for_every_slice():
    found = found_by("forward")
    assert found["shapes"] == {
        "logits": [1, 2, *PATCH],
        "mean": [1, 32, 256],
        "v": [1, 32, 256],
        "image": [1, 1, *PATCH],
    }
    assert found["finite"]


def test_stage_1_step_changes_every_weight_and_has_finite_losses():
    found = found_by("stage_1")
    assert {"loss", "ce", "dice", "mse", "kl"} <= set(found["losses"])
    assert all(math.isfinite(value) for value in found["losses"].values()) and found["finite"]
    assert found["parameters"] == 137_924_547 and found["unchanged"] == []


def test_stage_2_step_changes_the_posterior_network_and_leaves_the_teacher():
    found = found_by("stage_2")
    assert {"loss", "ce", "dice", "pseudo_ce", "pseudo_dice"} <= set(found["losses"])
    assert all(math.isfinite(value) for value in found["losses"].values()) and found["finite"]
    assert found["parameters"] == 9_596_738 and found["unchanged"] == []
    assert found["teacher_unchanged"]


if __name__ == "__main__":
    torch.manual_seed(0)
    started = time.perf_counter()
    facts = PARTS[sys.argv[1]]()
    facts["wall_s"], facts["cpu_s"] = time.perf_counter() - started, time.process_time()
    facts["peak_gib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps(facts))
