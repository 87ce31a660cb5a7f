"""How the semi-supervised literature optimises: no decay of norms and biases, seven sixteenths of a cosine."""

import math
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler


def parameter_groups(module: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Parameters that learn, for an optimiser: weights of convolutions and linear layers with weight decay, all else
    (biases, norms) without."""
    learning = [parameter for parameter in module.parameters() if parameter.requires_grad]
    return [
        {"params": [p for p in learning if p.ndim > 1], "weight_decay": weight_decay},
        {"params": [p for p in learning if p.ndim <= 1], "weight_decay": 0.0},
    ]


def encoder_and_rest(method: nn.Module, learning_rate: float, head_factor: float) -> list[dict[str, Any]]:
    """Parameters that learn, for an optimiser: those of encoders, and all else with `head_factor` times their rate."""
    learning = {name: parameter for name, parameter in method.named_parameters() if parameter.requires_grad}
    of_encoder = [parameter for name, parameter in learning.items() if ".encoder." in name]
    others = [parameter for name, parameter in learning.items() if ".encoder." not in name]
    return [{"params": of_encoder, "lr": learning_rate}, {"params": others, "lr": head_factor * learning_rate}]


class CosineDecay(LRScheduler):
    """The learning rate times cos(7 pi k / 16 K) at step k of K = T_max: it ends at a fifth of where it began."""

    def __init__(self, optimizer: Optimizer, T_max: int, last_epoch: int = -1) -> None:  # noqa: N803  (torch's name)
        self.T_max = T_max
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float | Tensor]:
        return self._get_closed_form_lr()

    def _get_closed_form_lr(self) -> list[float | Tensor]:
        share = min(self.last_epoch / self.T_max, 1.0)
        return [base * math.cos(7 * math.pi * share / 16) for base in self.base_lrs]
