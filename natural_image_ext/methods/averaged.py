"""A moving average of a network's weights beside the network: what is evaluated, or what teaches."""

from typing import Generic, TypeVar

from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

Network = TypeVar("Network", bound=nn.Module)


class AveragedMethod(nn.Module, Generic[Network]):
    """A method with a moving average of its network's weights: `average` is in the checkpoint."""

    def __init__(self, network: Network, ema_decay: float = 0.999) -> None:
        super().__init__()
        self.network = network
        self.average = AveragedModel(network, multi_avg_fn=get_ema_multi_avg_fn(ema_decay))
        self.average.requires_grad_(False)

    @property
    def averaged(self) -> Network:
        """The network with averaged weights; its norms and memory banks are those of the live one."""
        return self.average.module  # type: ignore[return-value]

    def after_step(self) -> None:
        """Called by the trainer after the optimiser's step."""
        self.average.update_parameters(self.network)
