"""From a case to its prediction on the scan's own grid: the one path of evaluation, batch prediction and review."""

import copy
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from monai.data import MetaTensor
from monai.transforms import Invertd
from torch import Tensor, nn

from medssl.core.bundle_folder import bundle_root
from medssl.core.checkpoint import load_tensors
from medssl.core.errors import CheckpointError, ConfigError
from medssl.core.flags import flag
from medssl.core.memory import require_memory
from medssl.core.prediction_options import checked_sampling, require_stride_within
from medssl.core.progress import work
from medssl.core.seeding import seeded
from medssl.data.pipeline import Pipeline
from medssl.data.volumes import read_header
from medssl.inference.mc_dropout import MCStatistics
from medssl.inference.memory_need import WAY_OUT, maps_bytes, statistics_bytes
from medssl.networks.weights import weights_digest
from medssl.security.opening import BundleConfig, open_bundle_config
from medssl.uncertainty.latent_share import measures_latent


@dataclass(frozen=True)
class Prediction:
    """One scan's result on its own grid (X, Y, Z): probs (C, X, Y, Z), entropy and mutual information in bits."""

    case_id: str
    probs: np.ndarray
    entropy: np.ndarray
    mutual_information: np.ndarray
    affine: np.ndarray

    @property
    def segmentation(self) -> np.ndarray:
        """The most probable class of each voxel."""
        return self.probs.argmax(0).astype(np.uint8)

    @property
    def spacing_mm(self) -> tuple[float, float, float]:
        x, y, z = np.linalg.norm(self.affine[:3, :3], axis=0)
        return float(x), float(y), float(z)


class SamplingInferer(Protocol):
    """What draws several predictions of a scan: `MCDropoutInferer`, or one for networks of slices.

    samples: predictions of each voxel, 0 for one without chance.
    """

    samples: int

    def require_network(self, network: Any) -> None:
        """ConfigError if it cannot do with this network what it is set to; to be asked before a training."""

    def prepare(self, network: Any, models_dir: Path) -> None: ...

    def working_bytes(self, network: Any, channels: int) -> float:
        """Memory for what goes through the network at a time, beside the maps of the scan."""

    def statistics(self, inputs: Tensor, network: Any) -> MCStatistics: ...

    def running_statistics(self, inputs: Tensor, network: Any, counts: Sequence[int]) -> list[MCStatistics]: ...

    def settings(self) -> dict[str, Any]:
        """What a prediction depends on besides the network and the scan."""

    def bundle_settings(self) -> dict[str, Any]:
        """The keys of an exported bundle's inference.json that make an inferer like this one."""


class Predictor:
    """Predicts cases with one network; the same case gives the same result in any order and on any machine of a kind.

    checkpoint: a file of `save_tensors` with the network's weights, or None to keep those it has. ConfigError for a
    scan that needs more memory than there is.
    """

    def __init__(
        self,
        network: nn.Module,
        pipeline: Pipeline,
        inferer: SamplingInferer,
        device: torch.device | str = "cpu",
        checkpoint: str | Path | None = None,
        seed: int = 0,
    ) -> None:
        self.device, self.pipeline, self.inferer, self.seed = torch.device(device), pipeline, inferer, seed
        self.network = network.to(self.device)
        if checkpoint is not None:
            load_weights(self.network, checkpoint)
            inferer.prepare(self.network, Path(checkpoint).parent)
        self._preprocessing = pipeline.preprocessing(with_label=False)
        self._invert = Invertd("maps", self._preprocessing, orig_keys="image", nearest_interp=False, to_tensor=True)

    @property
    def structures(self) -> dict[int, str]:
        return dict(self.pipeline.facts.target.structures)

    @property
    def measures_latent(self) -> bool:
        """Whether the mutual information of its predictions is that of a latent."""
        return measures_latent(self.network, self.inferer.samples)

    def weights_digest(self) -> str:
        """Names the weights: 16 hex digits that change with any of them."""
        return weights_digest(self.network)

    def settings(self) -> dict[str, Any]:
        """What a prediction depends on besides the scan."""
        return {
            "weights": self.weights_digest(),
            **self.inferer.settings(),
            "seed": self.seed,
            "paper_crop": self.pipeline.paper_crop,
            **({"region": self.pipeline.geometry.region} if self.pipeline.is_centred else {}),
        }

    def __call__(self, case: dict[str, Any]) -> Prediction:
        with work(case["id"]):
            prepared = self._prepared(case)
            with seeded(self.seed, case["id"]):
                statistics = self.inferer.statistics(self._input(prepared), self.network)
            return self._on_scans_grid(prepared, statistics)

    def running(self, case: dict[str, Any], counts: Sequence[int]) -> Iterator[tuple[Prediction, float]]:
        """The prediction from the first n samples for each n of the rising `counts`, and the seconds they took.

        The samples are drawn once; each prediction is that of an inferer with `samples` = n.
        """
        with work(case["id"]):
            prepared = self._prepared(case, len(counts))
            with seeded(self.seed, case["id"]):
                statistics_by_count = self.inferer.running_statistics(self._input(prepared), self.network, counts)
        for statistics in statistics_by_count:
            yield self._on_scans_grid(prepared, statistics), statistics.seconds

    def _prepared(self, case: dict[str, Any], counts: int = 1) -> dict[Hashable, Any]:
        """The case as the network takes it; ConfigError before the memory is used up that its prediction needs."""
        classes, what = self.pipeline.facts.num_classes, f"predicting {case['id']}"
        require_memory(maps_bytes(read_header(case["image"]).shape, classes), what, WAY_OUT)
        prepared: dict[Hashable, Any] = self._preprocessing(case)
        channels, *size = prepared["image"].shape
        need = statistics_bytes(size, classes, counts) + self.inferer.working_bytes(self.network, channels)
        require_memory(need, what, WAY_OUT, self.device)
        return prepared

    def _input(self, prepared: dict[Hashable, Any]) -> Tensor:
        return prepared["image"].as_tensor()[None].to(self.device)

    def _on_scans_grid(self, prepared: dict[Hashable, Any], statistics: MCStatistics) -> Prediction:
        image: MetaTensor = prepared["image"]
        maps = torch.cat([statistics.mean[0], statistics.entropy, statistics.mutual_information]).cpu()
        # what was done to the image is undone for its maps
        tracked = MetaTensor(
            maps, meta=copy.deepcopy(image.meta), applied_operations=copy.deepcopy(image.applied_operations)
        )
        inverted = self._invert({**prepared, "maps": tracked})["maps"]
        values = inverted.as_tensor().numpy()
        probs, entropy, information = values[:-2].clip(0, 1), values[-2].clip(0), values[-1].clip(0)
        probs[0] += 1 - probs.sum(0)  # outside of a cropped region nothing was predicted: background
        affine = np.asarray(inverted.affine, dtype=np.float64)
        return Prediction(prepared["id"], probs, entropy, information, affine)


def load_weights(network: nn.Module, checkpoint: str | Path) -> None:
    """Load the weights stored at `checkpoint`; CheckpointError names the file if they are another network's."""
    weights = load_tensors(checkpoint)
    try:
        network.load_state_dict(weights.get("model", weights))
    except (RuntimeError, AttributeError) as error:
        lines = str(error).splitlines()
        reason = lines[1] if len(lines) > 1 else lines[0]  # torch's first line says only that loading failed
        raise CheckpointError(
            f"{checkpoint}: holds another network's weights ({reason.strip()}). "
            "Use the configuration it was trained with."
        ) from error


def load_predictor(bundle: str | Path, *, trust: bool | str = False, **overrides: Any) -> Predictor:
    """The predictor of a trained bundle; overrides as in `parse_bundle`: samples, mode, backend, stride, device.

    ConfigError for a stride that is given and longer than the window.
    """
    predictor = parse_bundle(bundle, trust=trust, **overrides).get_parsed_content("predictor")
    stride = checked_sampling(overrides).get("stride")
    if stride is not None:
        require_stride_within(stride, predictor.inferer.settings()["window"])
    return predictor


def parse_bundle(bundle: str | Path, *, trust: bool | str = False, **overrides: Any) -> BundleConfig:
    """The inference.json of a trained bundle: a folder with configs/ and models/model.pt, or a run with one.

    Overrides replace top-level keys of it; those that are None do not. ConfigError for a key that it has not, and for
    numbers that no prediction can have; for a bundle that could do harm, too, unless the user said `trust`.
    """
    given = checked_sampling(overrides)
    root = bundle_root(bundle)
    if "checkpoint" not in overrides:
        require_weights(root)
    parser = open_bundle_config(root, "inference.json", trust)
    unknown = [key for key in given if key not in parser]
    if unknown:
        raise ConfigError(
            f"{root / 'configs' / 'inference.json'}: its predictions have no '{unknown[0]}'. Leave it out, or, if the "
            "bundle is of an earlier version, export it again by training with --resume true."
        )
    parser.update({"bundle_root": str(root), **given})
    if not flag(trust, "trust") and "checkpoint" in parser and "checkpoint" not in given:
        _require_inside(root, parser.get_parsed_content("checkpoint"))
    return parser


def _require_inside(root: Path, checkpoint: Any) -> None:
    """ConfigError if the weights of a bundle do not lie in it."""
    if checkpoint is not None and not Path(checkpoint).resolve().is_relative_to(root.resolve()):
        raise ConfigError(
            f"{root / 'configs' / 'inference.json'}: checkpoint '{checkpoint}' leaves the bundle. Expected a file in "
            "models/. --trust opens it all the same."
        )


def require_weights(root: Path) -> None:
    """CheckpointError if the bundle at `root` has no trained weights."""
    if not (root / "models" / "model.pt").is_file():
        raise CheckpointError(f"{root / 'models' / 'model.pt'}: no trained weights. Give the folder of a finished run.")
