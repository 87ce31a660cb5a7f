"""The neural-process head of NP-Match: predictions with uncertainty from pooled features (thesis, section 4.3)."""

import copy
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from medssl.core.errors import ConfigError
from medssl.uncertainty.maps import entropy_nats
from natural_image_ext.networks.heads import DrawingHead
from natural_image_ext.networks.memory_bank import MemoryBank

SLOPE = 0.1  # of leaky ReLU
Activation = Literal["softmax", "sigmoid"]
HeadNorm = Literal["none", "layer"]
ACTIVATIONS, HEAD_NORMS = ("softmax", "sigmoid"), ("none", "layer")


@dataclass(frozen=True)
class NPOutput:
    """logits (T, N, C) of T latent vectors; mean and std (hidden,) of the latent they were drawn from."""

    logits: Tensor
    mean: Tensor
    std: Tensor
    activation: Activation

    @property
    def probs(self) -> Tensor:
        """Mean over T of the probabilities, (N, C): of exclusive classes, or with sigmoid of each class by itself."""
        return self.sample_probs.mean(0)

    @property
    def sample_probs(self) -> Tensor:
        """The probabilities by each latent vector, (T, N, C)."""
        return torch.sigmoid(self.logits) if self.activation == "sigmoid" else F.softmax(self.logits, dim=-1)

    @property
    def uncertainty(self) -> Tensor:
        """Of each point, (N,): entropy of the mean in nats; with sigmoid the variance over T, summed over the classes.

        The latter is what the thesis takes where a point may have several classes.
        """
        if self.activation == "sigmoid":
            return self.sample_probs.var(0, correction=0).sum(-1)
        return entropy_nats(self.probs)

    @property
    def variance(self) -> Tensor:
        return self.std.square()


@dataclass(frozen=True)
class ConditionedOutput(NPOutput):
    """Of a training pass, with the representations (n, hidden) of context and target points for the memory banks."""

    context: Tensor
    target: Tensor


class NPHead(DrawingHead):
    """Takes the place of a classifier: features (N, in_features) to T predictions of `num_classes`.

    `forward` is the inference mode: what the two paths would give is the mean of their memory banks. `condition` is the
    training mode: context points pass the deterministic path, target points the latent one, each point with its
    (pseudo-)label; a step then writes what the paths gave to the banks, once, with `remember`.

    hidden: units of the paths and of the latent. The others regularise the decoder, and by default it is the thesis':
    norm "layer" normalises both its layers, dropout drops their units in training (never in a prediction), width is the
    number of these units, by default that of the features.
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        hidden: int | None = None,
        samples: int = 10,
        bank_size: int = 2560,
        activation: Activation = "softmax",
        norm: HeadNorm = "none",
        dropout: float = 0.0,
        width: int | None = None,
    ) -> None:
        super().__init__()
        if activation not in ACTIVATIONS:
            raise ConfigError(f"activation '{activation}' is unknown. Known: {', '.join(ACTIVATIONS)}.")
        if norm not in HEAD_NORMS:
            raise ConfigError(f"head_norm '{norm}' is unknown. Known: {', '.join(HEAD_NORMS)}.")
        self.activation, self.dropout = activation, dropout
        width = width or in_features
        hidden = max(1, in_features // 4) if hidden is None else hidden
        self.samples, self.hidden = samples, hidden
        self.latent_path = _two_layers(in_features + num_classes, hidden, last_active=True)
        self.deterministic_path = _two_layers(in_features + num_classes, hidden, last_active=True)
        self.to_mean, self.to_std = _two_layers(hidden, hidden), _two_layers(hidden, hidden)
        self.decoder = _two_layers(2 * hidden + in_features, width, last_active=True)
        self.decoder_norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 if norm == "layer" else 0))
        self.classifier = nn.Linear(width, num_classes)
        self.latent_bank, self.deterministic_bank = MemoryBank(bank_size, hidden), MemoryBank(bank_size, hidden)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_normal_(module.weight)
                nn.init.zeros_(module.bias)

    def forward(self, features: Tensor, samples: int | None = None) -> NPOutput:
        """Predictions for points whose labels are not known; samples 0 is as many as the head's own number."""
        mean, std = self.latent_of(self.latent_bank.mean())
        z = self._draw(mean, std, samples)
        return NPOutput(self.decode(features, z, self.deterministic_bank.mean()), mean, std, self.activation)

    def condition(
        self, context: Tensor, context_labels: Tensor, target: Tensor, target_labels: Tensor, samples: int | None = None
    ) -> ConditionedOutput:
        """Predictions for the target points (N, in_features); labels are one-hot, (n, num_classes)."""
        of_context = self.deterministic_path(torch.cat([context, context_labels], dim=-1))
        of_target = self.latent_path(torch.cat([target, target_labels], dim=-1))
        mean, std = self.latent_of(of_target.mean(0))
        z = self._draw(mean, std, samples)
        logits = self.decode(target, z, of_context.mean(0))
        return ConditionedOutput(logits, mean, std, self.activation, of_context, of_target)

    def remember(self, context: Tensor, target: Tensor) -> None:
        """Write one step's representations to the banks."""
        self.deterministic_bank.write(context)
        self.latent_bank.write(target)

    def latent_of(self, representation: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of the latent Gaussian; the latter is above 0.1."""
        return self.to_mean(representation), 0.1 + 0.9 * F.softplus(self.to_std(representation))

    def decode(self, features: Tensor, z: Tensor, context: Tensor) -> Tensor:
        """Logits (T, N, C) of features (N, in_features) with T latent vectors and one context vector.

        The first layer acts on [z, features, context]; as z and context are the same for all points, each part is
        multiplied once and not T x N times.
        """
        first: nn.Linear = self.decoder[0]  # type: ignore[assignment]
        of_z, of_features, of_context = first.weight.split([self.hidden, features.shape[-1], self.hidden], dim=1)
        shared = F.linear(features, of_features) + F.linear(context, of_context, first.bias)
        joined = shared + F.linear(z, of_z).unsqueeze(1)
        second = self.decoder[2](self._activated(joined, 0))
        return self.classifier(self._activated(second, 1))

    def _activated(self, values: Tensor, layer: int) -> Tensor:
        """What a layer of the decoder (0 or 1) gives, of the values of its units."""
        normed = self.decoder_norms[layer](values) if len(self.decoder_norms) else values
        active = self.decoder[2 * layer + 1](normed)
        return F.dropout(active, self.dropout, self.training) if self.dropout else active

    def for_inference(self) -> "NPHead":
        """A copy whose banks hold their mean alone: the same predictions, a few kilobytes less."""
        small = copy.deepcopy(self)
        for name in ("latent_bank", "deterministic_bank"):
            bank = MemoryBank(1, self.hidden).to(self.classifier.weight.device)
            bank.rows.copy_(getattr(self, name).mean().unsqueeze(0))  # not `write`: the first process exports alone
            setattr(small, name, bank)
        return small

    def _draw(self, mean: Tensor, std: Tensor, samples: int | None) -> Tensor:
        return mean + std * torch.randn(samples or self.samples, self.hidden, dtype=mean.dtype, device=mean.device)


def _two_layers(in_features: int, hidden: int, last_active: bool = False) -> nn.Sequential:
    last = [nn.LeakyReLU(SLOPE)] if last_active else []
    return nn.Sequential(nn.Linear(in_features, hidden), nn.LeakyReLU(SLOPE), nn.Linear(hidden, hidden), *last)
