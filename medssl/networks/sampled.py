"""Networks of images whose predictions are drawn as often as one likes: by latents, by dropout, or all alike."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor, nn

Sampler = Callable[[int], Iterable[Tensor]]


class SampledNetwork(nn.Module, ABC):
    """A network that says how its predictions are drawn, and how it is built again.

    builder: the full name of what builds it from `arguments`, for an exported bundle.
    """

    builder: str
    arguments: dict[str, Any]

    @property
    def draws_latents(self) -> bool:
        """Whether its predictions differ by draws of a latent, as those of a neural process do."""
        return False

    @abstractmethod
    def sampler(self, images: Tensor) -> Sampler:
        """From a number to as many predictions of `images` (B, 3, H, W), as probabilities (n, B, C, ...).

        They come in groups of n that are computed together: all draws of a latent at once, one pass with dropout after
        the other. Where all would be alike there is one. Number 0 asks for one prediction without chance of latents;
        whether dropout draws, the network's mode says (`mc_dropout`) when the groups are taken.
        """
