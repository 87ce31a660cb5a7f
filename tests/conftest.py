"""Shared by all tests: one small phantom set and one trained run, made once a session, and a group of processes."""

import multiprocessing
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from trainings import training_of

ROOT = Path(__file__).parents[1]
BUNDLE = ROOT / "bundles" / "mcdropout_unet3d"


@pytest.fixture(scope="session")
def bundles_dir() -> Path:
    return ROOT / "bundles"


@pytest.fixture(scope="session")
def bundle_dir() -> Path:
    return BUNDLE


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real scans: MEDSSL_DATA, or ../shared/data beside the repository; tests are skipped without it."""
    folder = Path(os.environ.get("MEDSSL_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real data in {folder}; set MEDSSL_DATA")
    return folder


@pytest.fixture(scope="session")
def phantom_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve phantom scans of 64x64x24 voxels with labels."""
    from medssl.data.phantom import write_phantoms

    root = tmp_path_factory.mktemp("phantom")
    write_phantoms(root, count=12)
    return root


@pytest.fixture(scope="session")
def picture_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve noisy pictures of 16x16 pixels in each of three class folders: red, green and blue."""
    import numpy as np
    from PIL import Image

    root, rng = tmp_path_factory.mktemp("pictures"), np.random.default_rng(0)
    for channel, name in enumerate(("red", "green", "blue")):
        (root / name).mkdir()
        colour = np.full(3, 60)
        colour[channel] = 200
        for number in range(12):
            pixels = (colour + rng.integers(-40, 40, (16, 16, 3))).astype(np.uint8)
            Image.fromarray(pixels).save(root / name / f"{number:02d}.png")
    return root


@pytest.fixture(scope="session")
def scene_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixteen images of 48x40 pixels, two films of eight: coloured boxes on a ground, with masks of three classes."""
    import numpy as np
    from PIL import Image

    root, rng = tmp_path_factory.mktemp("scenes"), np.random.default_rng(0)
    colours = np.array([[90, 90, 90], [200, 60, 60], [60, 60, 200]])
    for part in ("images", "masks"):
        (root / part).mkdir()
    for film in ("a", "b"):
        for frame in range(8):
            mask = np.zeros((40, 48), np.uint8)
            top, left = rng.integers(0, 20, 2)
            mask[top : top + 18, left : left + 18] = 1
            mask[25:38, 30:46] = 2
            pixels = (colours[mask] + rng.integers(-30, 30, (40, 48, 3))).astype(np.uint8)
            mask[:2] = 255
            Image.fromarray(pixels).save(root / "images" / f"{film}_{frame}.png")
            Image.fromarray(mask).save(root / "masks" / f"{film}_{frame}.png")
    return root


@pytest.fixture(scope="session")
def train_smoke(phantom_dir: Path) -> Callable[..., Path]:
    """Trains the bundle of the 3-D UNet with the smoke overlay."""
    return training_of(BUNDLE, ("train", "smoke"), phantom_dir)


@pytest.fixture(scope="session")
def trained_run(train_smoke, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished smoke training, tracked in its own SQLite file."""
    return train_smoke(tmp_path_factory.mktemp("runs") / "smoke", mlflow=True)


@pytest.fixture(scope="session")
def train_slices(phantom_dir: Path) -> Callable[..., Path]:
    """Trains np_semiseg on slices of the phantoms, with the overlays for scans."""
    return training_of(ROOT / "bundles" / "np_semiseg", ("train", "scans", "scans_smoke"), phantom_dir)


@pytest.fixture(scope="session")
def slice_run(train_slices, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished smoke training of the neural-process head on slices."""
    return train_slices(tmp_path_factory.mktemp("slices") / "smoke")


def _enter_group(rank: int, world_size: int, port: int, body: Callable, args: tuple) -> None:
    torch.set_num_threads(1)
    os.environ.update(
        RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world_size), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port)
    )
    from medssl.engine import start_process_group, stop_process_group

    start_process_group(timeout_minutes=1)
    body(rank, *args)
    stop_process_group()


@pytest.fixture
def run_in_group() -> Callable[..., list[int]]:
    """run(body, *args) -> exit codes of two forked gloo processes that call body(rank, *args)."""

    def run(body: Callable, *args, world_size: int = 2) -> list[int]:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        fork = multiprocessing.get_context("fork")
        members = [
            fork.Process(target=_enter_group, args=(rank, world_size, port, body, args)) for rank in range(world_size)
        ]
        for member in members:
            member.start()
        for member in members:
            member.join(60)
            if member.is_alive():
                member.kill()
                member.join()
        return [member.exitcode for member in members]

    return run
