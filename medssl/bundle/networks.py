"""The network of a training: placed on its device, with weights of another training to begin with where asked for."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from medssl.bundle.network_config import network_config
from medssl.bundle.scan_data import ScanData
from medssl.bundle.session import SessionOptions
from medssl.core.checkpoint import CheckpointStore, load_tensors
from medssl.core.errors import CheckpointError
from medssl.core.options import option
from medssl.engine.trainer import place
from medssl.inference.backends import require_network_for
from medssl.networks.mc_dropout import require_dropout
from medssl.networks.outputs import check_network, give_main_output


@dataclass(frozen=True)
class LoadedWeights:
    """What a network took from the weights of another one: names of tensors, and why others were left."""

    source: str
    loaded: tuple[str, ...]
    left: dict[str, str]
    unused: int

    def text(self) -> str:
        """One line for the user."""
        total = len(self.loaded) + len(self.left)
        first = [f"{name} ({reason})" for name, reason in list(self.left.items())[:5]]
        more = f" and {len(self.left) - 5} more" if len(self.left) > 5 else ""
        rest = f"; not loaded: {', '.join(first)}{more}" if self.left else ""
        unused = f"; {self.unused} stored there have no place here" if self.unused else ""
        return f"start_from {self.source}: {len(self.loaded)} of {total} tensors loaded{rest}{unused}"


@dataclass(frozen=True)
class NetworkOptions:
    """How a network is placed, and what it begins with."""

    channels_last: bool = option(False, "store convolution weights in channels-last order, which is faster on a CPU")
    start_from: str | None = option(None, "weights to begin with: a trained bundle, a run, or a file", place=True)


def prepared_network(
    network: nn.Module, device: torch.device | str, options: NetworkOptions, session: SessionOptions
) -> nn.Module:
    """`network` on its device, with the weights at `start_from` where they fit; says what was loaded and what not.

    A run that goes on has weights of its own: it needs the others no more.
    """
    if options.start_from and not goes_on(session):
        print(load_fitting_weights(network, options.start_from).text(), flush=True)
    return place(network, device, options.channels_last)


def goes_on(session: SessionOptions) -> bool:
    """Whether the run in `output_dir` is continued, which has weights of its own."""
    return session.resume and session.output_dir is not None and (Path(session.output_dir) / "run.json").is_file()


def require_fitting(network: nn.Module, data: ScanData, samples: int, backend: str) -> None:
    """Raise ConfigError, before anything is trained, for a network of any kind that does not fit.

    Its sizes must fit the patches and classes, `samples` must find a dropout layer, the back end must be able to
    compute it, and its arguments must be known for the export.
    """
    give_main_output(network)
    check_network(network, data.patch_size, data.num_classes)
    require_dropout(network, samples)
    require_network_for(backend, network)
    network_config(network, data=data)


def load_fitting_weights(network: nn.Module, start_from: str | Path) -> LoadedWeights:
    """Load every tensor at `start_from` that has the name and shape of one of the network's.

    start_from: a trained bundle, the folder of a run, or a file of weights or of a checkpoint. Raises CheckpointError
    if there is none, or nothing in it fits.
    """
    stored = _stored_weights(Path(start_from))
    own = network.state_dict()
    fitting, left = {}, {}
    for name, tensor in own.items():
        if name not in stored:
            left[name] = "not stored there"
        elif stored[name].shape != tensor.shape:
            left[name] = f"{tuple(stored[name].shape)} there, {tuple(tensor.shape)} here"
        else:
            fitting[name] = stored[name]
    if not fitting:
        raise CheckpointError(
            f"{start_from}: no tensor fits {type(network).__name__} (its first is {next(iter(own), 'none')}, "
            f"there it is {next(iter(stored), 'none')}). Give the weights of a network of the same kind."
        )
    network.load_state_dict({**own, **fitting})
    unused = len(stored.keys() - own.keys())
    return LoadedWeights(str(start_from), tuple(fitting), left, unused)


def _stored_weights(path: Path) -> dict[str, Tensor]:
    """The weights of a network in a bundle, a run, or a file."""
    if not path.exists():
        raise CheckpointError(
            f"start_from {path}: no such file or folder. Expected a trained bundle, a run, or a file of weights. "
            "Correct the path, or leave --start_from out to begin with new weights."
        )
    file = path
    if path.is_dir():
        exported = [path / "models" / "model.pt", path / "bundle" / "models" / "model.pt"]
        checkpoints = CheckpointStore(path / "checkpoints").files()
        candidates = [file for file in exported if file.is_file()] + checkpoints[::-1]
        if not candidates:
            raise CheckpointError(f"{path}: no weights. Give a trained bundle, a run with a checkpoint, or a file.")
        file = candidates[0]
    content = load_tensors(file)
    return _network_of(content) if isinstance(content, dict) else {}


def _network_of(content: dict[str, Any]) -> dict[str, Tensor]:
    """The evaluated network's tensors in exported weights or in a checkpoint of a training."""
    if not isinstance(content.get("method"), dict):
        return {name: value for name, value in content.items() if isinstance(value, Tensor)}
    method = content["method"]
    for prefix in ("average.module.", "network."):
        inside = {name.removeprefix(prefix): value for name, value in method.items() if name.startswith(prefix)}
        if inside:
            return {name: value for name, value in inside.items() if isinstance(value, Tensor)}
    return {}
