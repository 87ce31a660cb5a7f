"""How much of the uncertainty comes from a latent: mutual information of its draws over the entropy of their mean."""

import math
from dataclasses import dataclass
from typing import Any

LEAST_LATENT_SHARE = 0.01  # below it, draws of the latent are as good as one


@dataclass
class LatentShare:
    """Mutual information / entropy of all predictions together, added up case by case.

    1 where all uncertainty is that of the latent, 0 where the draws agree everywhere: then the latent does not reach
    the output, and neither do their number, its KL or what it is drawn from.
    """

    information: float = 0.0
    entropy: float = 0.0
    cases: int = 0

    def add(self, information: Any, entropy: Any) -> None:
        """Mutual information and entropy of a case, tensors or arrays of any shape, in the same unit."""
        self.information += float(information.sum())
        self.entropy += float(entropy.sum())
        self.cases += 1

    @property
    def value(self) -> float:
        """In [0, 1]; NaN where nothing is uncertain."""
        return self.information / self.entropy if self.entropy > 0 else math.nan


def measures_latent(network: Any, samples: int) -> bool:
    """Whether predictions of `network` by that many samples tell how much its latent does."""
    return bool(getattr(network, "draws_latents", False)) and samples > 1
