"""Every registered method as small trainable stages, and batches for them: what the contract test trains."""

from collections.abc import Callable

import torch
from torch import nn
from torch.utils.data import DataLoader

from medssl.core.seeding import seed_everything
from medssl.data import MixedDataset, Pipeline, dataset_facts, make_mixed_loader
from medssl.data.sampling import AugmentedDataset, make_loader
from medssl.engine import MethodTrainer
from medssl.losses import DiceCE
from medssl.methods.gbdl import LatentLearning, PosteriorLearning
from medssl.methods.method import Method, Schedule
from medssl.methods.noisy_student import StudentRound
from medssl.methods.pseudo_labels import PseudoLabels
from medssl.methods.registry import find_method, method_names
from medssl.networks import LRL, MCDropoutUNet3D

PATCH, STEPS, EPOCHS = (16, 16, 8), 2, 2
Stage = Callable[[float], Method]


def small_network(dropout: float = 0.3) -> MCDropoutUNet3D:
    return MCDropoutUNet3D(1, 2, widths=(4, 6), dropout=dropout)


def _single(name: str) -> Stage:
    """A method that is trained in one stage: nothing of its own is needed."""

    def build(dropout: float) -> Method:
        kind = find_method(name)
        schedule = Schedule(total_steps=EPOCHS * STEPS, steps_per_epoch=STEPS)
        return kind(small_network(dropout), DiceCE(), kind.Options(), schedule)

    return build


def _lrl() -> LRL:
    return LRL(1, 2, PATCH, widths=(4, 6), latent_dim=4)


def _latent(dropout: float) -> Method:
    return LatentLearning(_lrl(), DiceCE())


def _posterior(dropout: float) -> Method:
    return PosteriorLearning(small_network(dropout), PseudoLabels(_lrl(), samples=2), DiceCE())


def _student_round(dropout: float) -> Method:
    return StudentRound(small_network(dropout), DiceCE())


# methods of several stages, each stage by its name
STAGES: dict[str, dict[str, Stage]] = {
    "gbdl": {"gbdl, latent": _latent, "gbdl, posterior": _posterior},
    "noisy_student": {"noisy student, round": _student_round, "noisy student, end": _single("noisy_student")},
}


def all_stages() -> dict[str, tuple[str, Stage]]:
    """Title of a stage -> the method's name and what builds the stage, for every registered method."""
    stages: dict[str, tuple[str, Stage]] = {}
    for name in method_names():
        for title, build in STAGES.get(name, {name: _single(name)}).items():
            stages[title] = (name, build)
    return stages


def patches(name: str) -> AugmentedDataset | MixedDataset:
    """Made-up scans behind the real pipeline, with the views that the method needs."""
    facts = find_method(name).facts
    pipeline = Pipeline(dataset_facts("phantom"), patch_size=PATCH)
    generator = torch.Generator().manual_seed(7)
    images = [torch.rand((1, 20, 20, 10), generator=generator) * 2 - 1 for _ in range(8)]
    cases = [{"image": x, "label": (x > 0.2).to(torch.uint8), "id": f"case{i}"} for i, x in enumerate(images)]
    labelled = AugmentedDataset(cases[:4], pipeline.augmentation(views=facts.views))
    if not facts.learns_from_unlabelled:
        return labelled
    bare = [{key: value for key, value in case.items() if key != "label"} for case in cases[4:]]
    return MixedDataset(labelled, AugmentedDataset(bare, pipeline.augmentation(False, facts.views)))


def loader_of(name: str) -> DataLoader:
    dataset = patches(name)
    if isinstance(dataset, MixedDataset):
        return make_mixed_loader(dataset, batch_size=4, labelled_per_batch=2, steps=STEPS)
    return make_loader(dataset, batch_size=4, steps=STEPS)


def first_batch(name: str) -> dict:
    return next(iter(loader_of(name)))


def built(build: Stage, dropout: float = 0.3) -> Method:
    """The stage with weights that are the same each time."""
    seed_everything(3)
    return build(dropout)


def trainer_of(name: str, method: nn.Module, epochs: int = EPOCHS) -> MethodTrainer:
    learning = [parameter for parameter in method.parameters() if parameter.requires_grad]
    optimizer = torch.optim.Adam(learning, lr=0.01)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS * STEPS)
    return MethodTrainer(method, optimizer, loader_of(name), epochs, "cpu", lr_scheduler=scheduler, seed=5)
