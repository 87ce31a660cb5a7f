"""Encoders of segmentation-models-pytorch, with ImageNet weights, weights of a file, or random ones."""

from pathlib import Path
from typing import Any

import ignite.distributed as idist
from segmentation_models_pytorch.encoders import get_encoder
from torch import nn

from medssl.core.checkpoint import load_tensors
from medssl.core.errors import CheckpointError, ConfigError
from medssl.core.progress import work

IMAGENET = "imagenet"
WAY_ON = (
    "Give a file of weights (--encoder_weights resnet50.pth; torchvision's and timm's files fit), or random weights to "
    "begin with (--encoder_weights null)."
)


def open_encoder(name: str, pretrained: bool, output_stride: int) -> Any:
    """The encoder of that name in smp; with `pretrained` ImageNet weights, downloaded once and kept by smp.

    Raises ConfigError, with the way on, where the weights cannot be fetched or there are none.
    """
    if not pretrained:
        return get_encoder(name, weights=None, output_stride=output_stride)
    try:
        # of several processes one downloads
        with work(f"ImageNet weights of {name}"), idist.one_rank_first(rank=0, local=True):
            return get_encoder(name, weights=IMAGENET, output_stride=output_stride)
    except KeyError as error:
        raise ConfigError(f"encoder_weights {IMAGENET}: {error.args[0]}. {WAY_ON}") from error
    except (OSError, ValueError, RuntimeError) as error:
        lines = str(error).splitlines() or [type(error).__name__]
        raise ConfigError(
            f"encoder_weights {IMAGENET}: the weights of {name} cannot be fetched ({lines[0]}). {WAY_ON}"
        ) from error


def load_encoder(encoder: nn.Module, file: str | Path) -> None:
    """Load weights stored at `file` (torchvision's and timm's names are smp's); CheckpointError if they do not fit.

    Files of old versions of torchvision have no `num_batches_tracked`, which counts batches and is not needed.
    """
    weights = {name: value for name, value in load_tensors(file).items() if not name.startswith(("fc.", "classifier."))}
    known = encoder.state_dict()
    fitting = {name for name, value in weights.items() if name in known and known[name].shape == value.shape}
    missing = [name for name in known if name not in fitting and not name.endswith("num_batches_tracked")]
    if missing:
        raise CheckpointError(f"{file}: lacks {len(missing)} of the encoder's weights, first '{missing[0]}'.")
    encoder.load_state_dict({**known, **{name: weights[name] for name in fitting}})
