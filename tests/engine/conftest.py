"""A training that takes milliseconds, one with the real network that takes a second, and processes to run them in."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from monai.transforms import Compose, RandFlipd, RandGaussianNoised
from torch import Tensor, nn
from torch.utils.data import DataLoader

from medssl.data import AugmentedDataset, make_loader
from medssl.engine import KeepCheckpoints, MethodTrainer, RecordProgress, RunFolder, seed_everything
from medssl.engine.tracking import NoTracker
from medssl.losses import DiceCE
from medssl.methods import Supervised
from medssl.networks import MCDropoutUNet3D


class Line(nn.Module):
    """Fits y = 3 x; the loss of step `bad_step` is multiplied by `bad_factor`."""

    def __init__(self, bad_step: int = 0, bad_factor: float = 1.0) -> None:
        super().__init__()
        self.slope = nn.Parameter(torch.zeros(1))
        self.bad_step, self.bad_factor, self.step = bad_step, bad_factor, 0

    def forward(self, batch: dict) -> dict[str, Tensor]:
        self.step += 1
        error = ((self.slope * batch["x"] - 3 * batch["x"]) ** 2).mean()
        factor = self.bad_factor if self.step == self.bad_step else 1.0
        return {"loss": error * factor, "error": error}


@pytest.fixture
def line_loader() -> DataLoader:
    """Four batches of two cases `case0` .. `case7`."""
    return DataLoader([{"x": torch.tensor([0.5 + i / 8]), "id": f"case{i}"} for i in range(8)], batch_size=2)


@pytest.fixture
def line_trainer(line_loader: DataLoader) -> Callable[..., MethodTrainer]:
    """make(folder, epochs, method, handlers) -> trainer that records and keeps checkpoints if there is a folder."""

    def make(
        folder: RunFolder | None = None,
        epochs: int = 3,
        method: nn.Module | None = None,
        handlers: tuple = (),
        **kwargs,
    ) -> MethodTrainer:
        method = Line() if method is None else method
        kept = [RecordProgress(folder, NoTracker()), *handlers, KeepCheckpoints(folder)] if folder else [*handlers]
        optimizer = torch.optim.Adam(method.parameters(), lr=0.1)
        return MethodTrainer(method, optimizer, line_loader, epochs, "cpu", train_handlers=kept, **kwargs)

    return make


@pytest.fixture
def make_line() -> type[Line]:
    return Line


def unet_trainer(
    path: Path, epochs: int, resume: bool = False, workers: int = 0, seed: int = 0, dropout: float = 0.3, double=False
) -> MethodTrainer:
    """The real network with augmentation, cosine schedule, records and checkpoints on six made-up scans."""
    torch.set_num_threads(1)
    folder = RunFolder(path, resume)
    seed_everything(seed)
    dtype = torch.float64 if double else torch.float32
    generator = torch.Generator().manual_seed(99)
    images = [torch.rand((1, 8, 8, 4), generator=generator, dtype=dtype) for _ in range(6)]
    cases = [{"image": x, "label": (x > 0.6).to(torch.uint8), "id": f"case{i}"} for i, x in enumerate(images)]
    noise = RandGaussianNoised("image", prob=1.0, std=0.1, dtype=dtype)
    augmentation = Compose([RandFlipd(["image", "label"], prob=0.5, spatial_axis=0), noise])
    method = Supervised(MCDropoutUNet3D(1, 2, widths=(4, 6), dropout=dropout), DiceCE()).to(dtype)
    optimizer = torch.optim.Adam(method.parameters(), lr=0.01)
    trainer = MethodTrainer(
        method,
        optimizer,
        make_loader(AugmentedDataset(cases, augmentation), batch_size=4, steps=3, seed=seed, num_workers=workers),
        max_epochs=epochs,
        device="cpu",
        lr_scheduler=torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=12),
        seed=seed,
        train_handlers=[RecordProgress(folder, NoTracker()), KeepCheckpoints(folder)],
    )
    trainer.run_folder = folder
    return trainer


@pytest.fixture
def make_unet_trainer() -> Iterator[Callable[..., MethodTrainer]]:
    threads = torch.get_num_threads()
    yield unet_trainer
    torch.set_num_threads(threads)


@pytest.fixture
def history() -> Callable[..., list[dict]]:
    """read(folder, kind) -> records of history.jsonl, all kinds without `kind`."""

    def read(folder: Path, kind: str | None = None) -> list[dict]:
        records = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
        return [record for record in records if kind in (None, record["kind"])]

    return read
