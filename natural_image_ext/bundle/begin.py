"""What the configurations of these bundles call first, and what their trainings share."""

import shlex
from abc import ABC, abstractmethod
from functools import cached_property
from pathlib import Path
from typing import Any

import ignite.distributed as idist
import torch
from torch import nn

from medssl.bundle.keys import begin, given_by_name, given_options
from medssl.bundle.memory_need import require_training_memory, training_bytes
from medssl.bundle.networks import NetworkOptions, prepared_network
from medssl.bundle.scan_data import ScanDataOptions
from medssl.bundle.session import DataOfRun, Session, SessionOptions, SplitOfRun, default_run_name
from medssl.bundle.story import TrainingPlan
from medssl.bundle.training import places_of
from medssl.core.output_folder import require_output_folder
from natural_image_ext.bundle.options import PictureDataOptions, PictureOptions, SceneDataOptions, SceneOptions

PICTURE_PARTS = (PictureDataOptions, PictureOptions, SessionOptions, NetworkOptions)
SCENE_PARTS = (SceneDataOptions, SceneOptions, SessionOptions, NetworkOptions)
SLICE_PARTS = (ScanDataOptions, SceneOptions, SessionOptions, NetworkOptions)


def begin_pictures(bundle_root: str | Path, seed: int) -> None:
    """The beginning of a training on pictures."""
    begin(bundle_root, seed, PICTURE_PARTS)


def begin_scenes(bundle_root: str | Path, seed: int) -> None:
    """The beginning of a training on scenes or, with the overlay `scans`, on slices."""
    is_on_slices = given_by_name(["overlay"]).get("overlay") == "scans"
    begin(bundle_root, seed, SLICE_PARTS if is_on_slices else SCENE_PARTS)


class NaturalTraining(ABC):
    """What trainings on pictures, scenes and slices share: their session and their network.

    network: as `network_def` builds it. variant: named in the run's folder. listed: the session's and the network's
    options that the configuration lists.
    """

    bundle = ""
    images = "images"
    parts: tuple[type, ...] = ()
    data: Any

    def __init__(self, network: nn.Module, device: torch.device | str, bundle_root: str | Path, **listed: Any) -> None:
        self.built_network, self.device, self.bundle_root = network, torch.device(device), bundle_root
        self.session_options = given_options(SessionOptions, listed)
        self.network_options = given_options(NetworkOptions, {})

    @cached_property
    def network(self) -> Any:
        """The network on its device, with the weights it starts from."""
        return prepared_network(self.built_network, self.device, self.network_options, self.session_options)

    def check(self) -> None:
        """Say what is going to be done; raise before anything is written, what takes least time first.

        ConfigError for a folder or a need of memory that does not fit, DataError for a file that cannot be read.
        """
        session = self.session
        if idist.get_rank() == 0:  # it may have made the folder when the others look
            require_output_folder(session.path, session.options.resume)
        plan = self.plan()
        plan.tell()
        require_training_memory(plan.memory_bytes, self.device, "Give a smaller --batch_size.")
        self.data.check(session.options.runs_dir)

    def plan(self) -> TrainingPlan:
        """What is going to be trained, on what and for how long."""
        asked, schedule = self.data.options, self.schedule
        height, width = self.input_size()
        labelled, unlabelled = self.images_a_step()
        batch = (labelled + unlabelled, 3, height, width)
        return TrainingPlan(
            method=self.session.title,
            data=f"{asked.dataset_name} in {asked.dataset_dir}",
            cases=self.images,
            counts=self.data.split.counts,
            network=self.network,
            input=f"{height} x {width} pixels, {labelled} labelled and {unlabelled} unlabelled a step",
            voxels_per_step=(labelled + unlabelled) * height * width,
            epochs=schedule.epochs,
            steps_per_epoch=schedule.steps_per_epoch,
            device=self.device,
            folder=self.session.path,
            memory_bytes=training_bytes([self.network], [batch], cached=0, with_average=True, moments=1),
        )

    @property
    @abstractmethod
    def session(self) -> Session:
        """The run's folder, its tracking and its rhythm."""

    @property
    @abstractmethod
    def schedule(self) -> Any:
        """What says how many `epochs` there are, of how many `steps_per_epoch`."""

    @abstractmethod
    def input_size(self) -> tuple[int, int]:
        """Height and width of what the network sees in a step."""

    @abstractmethod
    def images_a_step(self) -> tuple[int, int]:
        """How many labelled and unlabelled images a step sees."""

    def open_session(
        self, data: DataOfRun, split: SplitOfRun, asked: Any, choices: Any, variant: str, lists_dir: str | None = None
    ) -> Session:
        """The session on these data. asked: their options. choices: what is trained, with `facts`."""
        name = default_run_name(self.bundle, asked.dataset_name, asked.labelled, asked.seed, variant, lists_dir)
        return Session(
            self.bundle,
            choices,
            data,
            split,
            self.network,
            self.device,
            self.session_options,
            seed=asked.seed,
            run_name=name,
            places=places_of(*self.parts),
        )


def commands_after_images(run: Path, images: str) -> list[str]:
    """What to type after a training on pictures or scenes. images: what stands for the user's folder of them."""
    name, bundle = shlex.quote(str(run)), run / "bundle"
    files = f"--config_file {shlex.quote(str(bundle / 'configs' / 'inference.json'))}"
    root = f"--bundle_root {shlex.quote(str(bundle))}"
    return [
        f"medssl report {name}",
        f"python -m monai.bundle run predicting {files} {root} --dataset_dir {images} --output_dir predictions",
    ]
