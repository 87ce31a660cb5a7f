"""What a network asks of its head, whichever it is: logits, draws for a prediction, a training pass."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from medssl.networks.sampled import Sampler


class Head(nn.Module, ABC):
    """The last part of a network: features (B, F, ...) to predictions of C classes."""

    @abstractmethod
    def logits(self, features: Tensor) -> Tensor:
        """Logits (B, C, ...); of a head that draws, the logarithms of its mean probabilities."""

    @abstractmethod
    def sampler(self, compute_features: Callable[[], Tensor], passes_differ: bool) -> Sampler:
        """From a number to as many predictions, as `SampledNetwork.sampler` gives them.

        compute_features: a pass of what lies before the head. passes_differ: whether the next pass of the network may
        differ from this one, because of dropout.
        """

    def for_inference(self) -> "Head":
        """A head with the same predictions, without what only a training needs."""
        return self


class DrawingHead(Head):
    """A head whose own output holds draws of its latent: `logits`, their mean `probs` and `sample_probs` (T, ...)."""

    def logits(self, features: Tensor) -> Tensor:
        output = self(features)
        return output.probs.clamp_min(torch.finfo(output.logits.dtype).tiny).log()

    def sampler(self, compute_features: Callable[[], Tensor], passes_differ: bool) -> Sampler:
        """All draws in one group, from features that are computed at once."""
        features = compute_features()

        def draw(number: int) -> Iterator[Tensor]:
            yield self(features, number).sample_probs

        return draw


@dataclass(frozen=True)
class TrainingPass:
    """What a segmentation method learns from: logits (B, C, *spatial), and the KL of latents, 0 without any."""

    logits: Tensor
    kl: Tensor


class SegmentationHead(Head):
    """A head on feature maps (B, F, *spatial)."""

    @abstractmethod
    def mean_logits(self, features: Tensor, samples: int | None = None) -> Tensor:
        """Logits (B, C, *spatial), of a head that draws the mean over `samples` draws.

        None stands for the head's own number, 0 for one prediction without chance.
        """

    @abstractmethod
    def learn(self, features: Tensor, labels: Tensor, labelled: int) -> TrainingPass:
        """A training pass over the maps, of which the first `labelled` are of labelled images.

        labels (B, *spatial of any resolution): true ones of those, pseudo-labels of the others; 255 stands for none.
        """


class PlainHead(SegmentationHead):
    """A head whose output is logits: any chance is that of dropout, in it or before it."""

    def logits(self, features: Tensor) -> Tensor:
        return self(features)

    def sampler(self, compute_features: Callable[[], Tensor], passes_differ: bool) -> Sampler:
        def draw(number: int) -> Iterator[Tensor]:
            for _ in range(max(1, number) if passes_differ else 1):
                yield self(compute_features()).softmax(1).unsqueeze(0)

        return draw

    def mean_logits(self, features: Tensor, samples: int | None = None) -> Tensor:
        return self(features)

    def learn(self, features: Tensor, labels: Tensor, labelled: int) -> TrainingPass:
        return TrainingPass(self(features), features.new_zeros(()))


class LinearHead(PlainHead, nn.Linear):
    """One linear layer on pooled features."""


class LayeredHead(PlainHead, nn.Sequential):
    """Layers one after the other."""
