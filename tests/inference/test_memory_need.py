"""What a prediction is said to need is what it takes, about; what does not fit is refused before it is taken."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from medssl.core.errors import ConfigError
from medssl.data import Pipeline, facts_from_json
from medssl.data.volumes import write_nifti
from medssl.inference import MCDropoutInferer, Predictor
from medssl.inference.memory_need import maps_bytes, statistics_bytes, windows_bytes
from medssl.inference.slice_sampling import SliceInferer
from medssl.networks import MCDropoutUNet3D

WINDOW = (64, 64, 32)
SIZE = (192, 192, 128)


class Brightness(nn.Module):
    """So many classes, each the likelier the brighter a voxel; takes hardly any memory itself."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.classes = classes

    def forward(self, image):
        return torch.cat([image * factor for factor in range(self.classes)], dim=1)


def predictor_of(classes: int) -> Predictor:
    names = {str(index): f"structure {index}" for index in range(1, classes)}
    facts = facts_from_json(
        "folder",
        window=[-100, 250],
        slice_size=None,
        region_size=None,
        patch_size=list(WINDOW),
        label_map={index: int(index) for index in names},
        structures=names,
    )
    return Predictor(Brightness(classes), Pipeline(facts), MCDropoutInferer(WINDOW, WINDOW, samples=0))


def resident_bytes(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{key}:"))


def case_in(folder: Path) -> dict[str, str]:
    """A scan that is written to the folder."""
    voxels = np.random.default_rng(0).integers(-100, 250, SIZE).astype(np.int16)
    write_nifti(folder / "scan.nii", voxels, np.eye(4), np.int16)
    return {"id": "scan", "image": str(folder / "scan.nii")}


def predict_scan(classes: int) -> Callable[[], object]:
    predictor, case = predictor_of(classes), case_in(Path(tempfile.mkdtemp()))
    return lambda: predictor(case)


def windows_inferer() -> tuple[nn.Module, MCDropoutInferer]:
    network, window = MCDropoutUNet3D(1, 2, widths=(32, 64, 96)).eval(), (96, 96, 32)
    return network, MCDropoutInferer(window, window, samples=2, window_batch=1, mode="exact")


def pass_windows() -> Callable[[], object]:
    network, inferer = windows_inferer()
    return lambda: inferer.statistics(torch.zeros(1, 1, *inferer.window), network)


MEASURED = {"2 classes": lambda: predict_scan(2), "6 classes": lambda: predict_scan(6), "windows": pass_windows}


def print_peaks() -> None:
    """All peaks over what was held before, each measured in a fork of this process, which has used no memory yet."""
    torch.set_num_threads(1)
    for prepare in MEASURED.values():
        child = os.fork()
        if child == 0:
            work = prepare()
            Path("/proc/self/clear_refs").write_text("5")  # the highest mark begins anew
            before = resident_bytes("VmRSS")
            work()
            print(resident_bytes("VmHWM") - before, flush=True)
            os._exit(0)
        os.waitpid(child, 0)


@pytest.fixture(scope="module")
def peaks():
    """Bytes of each of MEASURED, of a process of its own: memory that tests gave back would hide them."""
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("needs Linux' mark of the highest memory")
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=True, timeout=300)
    return dict(zip(MEASURED, map(int, done.stdout.split()), strict=True))


@pytest.mark.parametrize("classes", [2, 6])
def test_estimate_is_near_the_measured_peak(peaks, classes):
    needed = max(maps_bytes(SIZE, classes), statistics_bytes(SIZE, classes))
    peak = peaks[f"{classes} classes"]
    assert peak / 1.5 < needed < peak * 1.5


def test_estimate_for_windows_is_near_the_measured_peak(peaks):
    network, inferer = windows_inferer()
    assert peaks["windows"] / 1.5 < inferer.working_bytes(network, 1) < peaks["windows"] * 1.5


def test_windows_of_a_network_that_was_just_trained_can_be_estimated():
    """In training mode batch normalisation refuses one value a channel."""
    network = nn.Sequential(nn.Conv3d(1, 2, 3, stride=4), nn.BatchNorm3d(2)).train()
    assert windows_bytes(network, 1, (4, 4, 4), 1) > 0 and network[1].training


def test_every_number_of_samples_has_sums_of_its_own():
    one, three = statistics_bytes(SIZE, 2), statistics_bytes(SIZE, 2, counts=3)
    assert three == one + 2 * statistics_bytes(SIZE, 2) * 8 / 13


def test_windows_at_a_time_add_up_and_auto_counts_one():
    network = MCDropoutUNet3D(1, 2, widths=(4, 8))
    one, four = (MCDropoutInferer(WINDOW, WINDOW, window_batch=n).working_bytes(network, 1) for n in ("auto", 4))
    assert one == windows_bytes(network, 1, WINDOW, 1) > 0 and four == 4 * one


def test_network_whose_sizes_cannot_be_computed_ahead_counts_nothing():
    class Looking(nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    assert windows_bytes(Looking(), 1, WINDOW, 1) == 0.0


def test_networks_of_slices_count_their_maps_only():
    assert SliceInferer().working_bytes(nn.Identity(), 1) == 0.0


@pytest.mark.parametrize("short_of", ["maps", "statistics"])
def test_scan_that_does_not_fit_is_refused_before_it_is_predicted(tmp_path, short_of, monkeypatch):
    predictor, case = predictor_of(2), case_in(tmp_path)
    read = []
    monkeypatch.setattr(f"medssl.inference.predictor.{short_of}_bytes", lambda *_: 9e15)
    prepare = predictor._preprocessing
    monkeypatch.setattr(predictor, "_preprocessing", lambda given: read.append(given) or prepare(given))
    monkeypatch.setattr(predictor.inferer, "statistics", lambda *_: pytest.fail("was predicted"))
    with pytest.raises(ConfigError, match=r"^predicting scan needs about 9000000 GB, .* are free\. Resample the scan"):
        predictor(case)
    assert len(read) == (short_of == "statistics")


if __name__ == "__main__":
    print_peaks()
