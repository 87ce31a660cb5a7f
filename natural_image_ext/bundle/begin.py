"""What the configurations of these bundles call first, and what their trainings share."""

from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import nn

from medssl.bundle.keys import begin, given_by_name, given_options
from medssl.bundle.networks import NetworkOptions, prepared_network
from medssl.bundle.scan_data import ScanDataOptions
from medssl.bundle.session import DataOfRun, Session, SessionOptions, SplitOfRun, default_run_name
from medssl.bundle.training import places_of
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


class NaturalTraining:
    """What trainings on pictures, scenes and slices share: their session and their network.

    network: as `network_def` builds it. variant: named in the run's folder. listed: the session's and the network's
    options that the configuration lists.
    """

    bundle = ""
    parts: tuple[type, ...] = ()

    def __init__(self, network: nn.Module, device: torch.device | str, bundle_root: str | Path, **listed: Any) -> None:
        self.built_network, self.device, self.bundle_root = network, torch.device(device), bundle_root
        self.session_options = given_options(SessionOptions, listed)
        self.network_options = given_options(NetworkOptions, {})

    @cached_property
    def network(self) -> Any:
        """The network on its device, with the weights it starts from."""
        return prepared_network(self.built_network, self.device, self.network_options, self.session_options)

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
