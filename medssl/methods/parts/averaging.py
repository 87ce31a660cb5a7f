"""A moving average of a network's weights beside the network: what is evaluated, or what teaches."""

from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from medssl.methods.method import Method, Schedule
from medssl.methods.parts.side_heads import with_features
from medssl.networks.mc_dropout import mc_dropout

Network = TypeVar("Network", bound=nn.Module)


class AveragedMethod(Method, Generic[Network]):
    """A method with a moving average of its network's weights, which is evaluated: `average` is in the checkpoint.

    After a step, weights w of the average become ema_decay w + (1 - ema_decay) v, v those of the network; after the
    first one they are v. Whether the average teaches is the method's own matter. loss: none where a method has its
    losses in itself.
    """

    network: Network

    def __init__(
        self,
        network: Network,
        loss: nn.Module | None = None,
        options: Any = None,
        schedule: Schedule | None = None,
        *,
        ema_decay: float = 0.999,
    ) -> None:
        super().__init__(network, nn.Identity() if loss is None else loss, options, schedule)
        self.average = moving_average(network, ema_decay)

    @property
    def averaged(self) -> Network:
        """The network with averaged weights; its norms and memory banks are those of the live one."""
        return self.average.module  # type: ignore[return-value]

    @property
    def evaluated(self) -> Network:
        return self.averaged

    def after_step(self) -> None:
        super().after_step()
        self.average.update_parameters(self.network)


def moving_average(network: nn.Module, decay: float) -> AveragedModel:
    """A copy of `network` without gradient, whose weights follow it with `update_parameters(network)`.

    Buffers (statistics of norms, memory banks) are no averages: they are copied from the network.
    """
    average = AveragedModel(network, multi_avg_fn=get_ema_multi_avg_fn(decay))
    return average.requires_grad_(False)


@torch.no_grad()
def teacher_probs(network: nn.Module, images: Tensor) -> Tensor:
    """Probabilities (B, C, *spatial) of a network that teaches, in evaluation mode; its own mode stays as it was."""
    with mc_dropout(network, enabled=False):
        return torch.softmax(network(images), dim=1)


NOISE, MOST_NOISE = 0.1, 0.2  # of images in [-1, 1]: standard deviation, and what it is cut at


@torch.no_grad()
def noisy_passes(network: nn.Module, images: Tensor, passes: int) -> Tensor:
    """Probabilities (passes, B, C, *spatial) of passes with dropout, each on images with noise of its own."""
    probs = []
    with mc_dropout(network):
        for _ in range(passes):
            probs.append(torch.softmax(network(noisy(images)), dim=1))
    return torch.stack(probs)


@torch.no_grad()
def noisy_passes_with_features(
    network: nn.Module, images: Tensor, passes: int, noise: float = NOISE, most: float = MOST_NOISE
) -> tuple[Tensor, Tensor]:
    """Probabilities of `noisy_passes`, and the features (passes, B, F, *spatial) that they were made of."""
    probs, features = [], []
    with mc_dropout(network):
        for _ in range(passes):
            logits, seen = with_features(network, noisy(images, noise, most))
            probs.append(torch.softmax(logits, dim=1))
            features.append(seen)
    return torch.stack(probs), torch.stack(features)


def noisy(images: Tensor, noise: float = NOISE, most: float = MOST_NOISE) -> Tensor:
    """Images with Gaussian noise of standard deviation `noise`, cut at `most`."""
    return images + (torch.randn_like(images) * noise).clamp(-most, most)
