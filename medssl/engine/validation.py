"""Validation during training: mean Dice of the foreground on the network's grid, without dropout."""

from collections.abc import Iterable

import torch
from monai.engines import SupervisedEvaluator
from monai.handlers import MeanDice, from_engine
from monai.inferers import Inferer
from monai.transforms import AsDiscreted, Compose
from torch import nn

from medssl.core.flags import flag


def segmentation_validator(
    network: nn.Module,
    data_loader: Iterable,
    inferer: Inferer,
    num_classes: int,
    device: torch.device,
    amp: bool | str = False,
    metric: str = "dice",
) -> SupervisedEvaluator:
    """A MONAI evaluator whose `metric` is the Dice, its mean over cases and foreground classes.

    In a process group every process validates all cases, so that none waits for another's shard.
    """
    discrete = Compose(
        [
            AsDiscreted("pred", argmax=True, to_onehot=num_classes),
            AsDiscreted("label", to_onehot=num_classes),
        ]
    )
    return SupervisedEvaluator(
        device=device,
        val_data_loader=data_loader,
        network=network,
        inferer=inferer,
        postprocessing=discrete,
        key_val_metric={metric: MeanDice(include_background=False, output_transform=from_engine(["pred", "label"]))},
        amp=flag(amp, "amp"),
    )
