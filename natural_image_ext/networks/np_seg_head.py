"""The neural-process head of NP-SemiSeg (thesis, section 5.3), in place of a segmentation network's classifier."""

import copy
from dataclasses import dataclass
from typing import Literal

import torch
from monai.networks.layers import Conv, Norm
from torch import Tensor, nn
from torch.nn import functional as F

from medssl.core.errors import ConfigError
from medssl.distributions import diagonal_gaussians_kl
from natural_image_ext.networks.class_banks import ClassBanks
from natural_image_ext.networks.constant_maps import convolve_constant
from natural_image_ext.networks.heads import DrawingHead, SegmentationHead, TrainingPass

Aggregator = Literal["attention", "per_channel", "mean"]
CACHED_VALUES = 2**21  # 8 MB


@dataclass(frozen=True)
class NPSegOutput:
    """logits (T, B, C, *spatial); mean and std (B, latent) of each image's latent vector."""

    logits: Tensor
    mean: Tensor
    std: Tensor

    @property
    def probs(self) -> Tensor:
        """Mean over T of the probabilities, (B, C, *spatial)."""
        return self.sample_probs.mean(0)

    @property
    def sample_probs(self) -> Tensor:
        """The probabilities by each latent vector, (T, B, C, *spatial)."""
        return F.softmax(self.logits, dim=2)

    @property
    def mean_logits(self) -> Tensor:
        return self.logits.mean(0)


@dataclass(frozen=True)
class NPSegTraining(NPSegOutput):
    """Of a training pass, with mean and std (B, latent) of the latents as the context images see them."""

    context_mean: Tensor
    context_std: Tensor

    @property
    def kl(self) -> Tensor:
        """Mean over the images of the KL of their latents from those that the context images see, in nats."""
        return diagonal_gaussians_kl(self.mean, self.std.square(), self.context_mean, self.context_std.square()).mean()


class NPSegHead(DrawingHead, SegmentationHead):
    """Feature maps (B, in_channels, *spatial), 2-D or 3-D, to T maps of logits of `num_classes`.

    A small ConvNet reduces the maps; banks hold reduced vectors of every class, of target images for the latent path
    and of context (labelled) images for the deterministic one; their means are the centres. Every place of a map is
    described by the centres near it (`aggregator`), the average of that over the image gives its latent Gaussian and
    its context vector, and a decoder joins both with the features. `forward` is the inference mode, `condition` the
    training mode, which also writes to the banks.

    aggregator: "attention" is the thesis' (softmax over the centres of minus the distance), "per_channel" that of the
    released code (softmax of minus the squared difference, channel by channel), "mean" the ablation.
    """

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        spatial_dims: int = 2,
        samples: int = 5,
        bank_size: int = 2560,
        hidden: int = 32,
        width: int = 256,
        pixels_per_class: int = 256,
        aggregator: Aggregator = "attention",
    ) -> None:
        super().__init__()
        if aggregator not in ("attention", "per_channel", "mean"):
            raise ConfigError(f"aggregator '{aggregator}' is unknown. Known: attention, per_channel, mean.")
        self.num_classes, self.samples, self.hidden, self.aggregator = num_classes, samples, hidden, aggregator
        conv, norm = Conv[Conv.CONV, spatial_dims], Norm[Norm.INSTANCE, spatial_dims]
        self.reduce = nn.Sequential(
            conv(in_channels, hidden, 1), norm(hidden), nn.ReLU(),
            conv(hidden, hidden, 1), norm(hidden), nn.ReLU(),
            conv(hidden, hidden, 1),
        )  # fmt: skip
        self.to_latent = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 2 * hidden))
        self.first = conv(in_channels + 2 * hidden, width, 3, padding=1)
        self.decoder = nn.Sequential(
            norm(width),
            nn.ReLU(),
            conv(width, width, 3, padding=1),
            norm(width),
            nn.ReLU(),
            conv(width, num_classes, 1),
        )
        self.latent_banks, self.context_banks = (
            ClassBanks(num_classes, bank_size, hidden, pixels_per_class) for _ in range(2)
        )

    def forward(self, features: Tensor, samples: int | None = None) -> NPSegOutput:
        """Predictions for images whose labels are not known; samples 0 is one prediction, of the latents' means."""
        reduced = self.reduce(features.detach())
        mean, std = self.latent_of(self.described(reduced, self.latent_banks.centres()))
        context_vector = self.described(reduced, self.context_banks.centres())
        return NPSegOutput(self.decode(features, self._draw(mean, std, samples), context_vector), mean, std)

    def mean_logits(self, features: Tensor, samples: int | None = None) -> Tensor:
        return self(features, samples).mean_logits

    def learn(self, features: Tensor, labels: Tensor, labelled: int) -> TrainingPass:
        """Labelled images are the context and all are targets."""
        output = self.condition(features[:labelled], labels[:labelled], features, labels)
        return TrainingPass(output.mean_logits, output.kl)

    def condition(
        self,
        context: Tensor,
        context_labels: Tensor,
        target: Tensor,
        target_labels: Tensor,
        samples: int | None = None,
    ) -> NPSegTraining:
        """Predictions for the target maps (B, in_channels, *spatial); writes both sides to the banks first.

        Labels (B, *spatial of any resolution) are classes; 255 stands for none. Gradients reach the features through
        the decoder alone, the small ConvNet through the attention.
        """
        reduced = self.reduce(target.detach())
        if self.training:
            with torch.no_grad():
                reduced_context = self.reduce(context)
            self.latent_banks.write(reduced, fitted(target_labels, reduced))
            self.context_banks.write(reduced_context, fitted(context_labels, reduced_context))
        mean, std = self.latent_of(self.described(reduced, self.latent_banks.centres()))
        context_vector = self.described(reduced, self.context_banks.centres())
        context_mean, context_std = self.latent_of(context_vector)
        logits = self.decode(target, self._draw(mean, std, samples), context_vector)
        return NPSegTraining(logits, mean, std, context_mean, context_std)

    def described(self, reduced: Tensor, centres: Tensor) -> Tensor:
        """The maps (B, hidden, *spatial) by the centres (C, hidden), averaged over each image: (B, hidden)."""
        if self.aggregator == "mean":
            unused = 0 * reduced.flatten(2).mean(-1)  # distributed training wants a gradient of every parameter
            return centres.mean(0) + unused
        places = reduced.flatten(2).movedim(1, -1)
        if self.aggregator == "per_channel":
            apart = (places.unsqueeze(2) - centres).square()
            return (torch.softmax(-apart, dim=2) * centres).sum(2).mean(1)
        return (attention(places, centres) @ centres).mean(1)

    def latent_of(self, described: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of the latent Gaussian, (B, hidden) each; the latter is above 0.1."""
        mean, raw = self.to_latent(described).chunk(2, dim=-1)
        return mean, 0.1 + 0.9 * F.softplus(raw)

    def decode(self, features: Tensor, z: Tensor, context: Tensor) -> Tensor:
        """Logits (T, B, C, *spatial) of features (B, in_channels, *spatial), z (T, B, hidden) and context (B, hidden).

        The first convolution acts on [features, z, context]. As z and context are the same all over an image, the part
        of the features is computed once and not T times, and that of z and context for each kind of border alone.
        On a CPU the samples are decoded in groups whose maps stay in its cache.
        """
        channels, size = features.shape[1], features.shape[2:]
        of_features, of_vectors = self.first.weight[:, :channels], self.first.weight[:, channels:]
        convolve = F.conv2d if features.ndim == 4 else F.conv3d
        shared = convolve(features, of_features, self.first.bias, padding=1)
        vectors = torch.cat([z, context.expand_as(z)], dim=-1)
        group = max(1, CACHED_VALUES // shared.numel()) if shared.is_cpu else len(z)
        logits = []
        for drawn in vectors.split(group):
            of_drawn = convolve_constant(drawn.flatten(0, 1), of_vectors, tuple(size)).unflatten(0, drawn.shape[:2])
            logits.append(self.decoder((shared + of_drawn).flatten(0, 1)).unflatten(0, drawn.shape[:2]))
        return torch.cat(logits)

    def for_inference(self) -> "NPSegHead":
        """A copy whose banks hold their centres alone: the same predictions."""
        small = copy.deepcopy(self)
        small.latent_banks, small.context_banks = self.latent_banks.only_centres(), self.context_banks.only_centres()
        return small

    def _draw(self, mean: Tensor, std: Tensor, samples: int | None) -> Tensor:
        """T latent vectors of each image, (T, B, hidden); for 0 samples the one mean."""
        if samples == 0:
            return mean.unsqueeze(0)
        number = self.samples if samples is None else samples
        return mean + std * torch.randn(number, *mean.shape, dtype=mean.dtype, device=mean.device)


def attention(places: Tensor, centres: Tensor) -> Tensor:
    """Weights (B, N, C) of the centres (C, D) for places (B, N, D): softmax of minus the Euclidean distance."""
    squared = (
        places.square().sum(-1, keepdim=True) - 2 * places @ centres.T + centres.square().sum(-1)
    )  # cheaper than torch.cdist, and with a gradient where a place lies on a centre
    return torch.softmax(-squared.clamp_min(1e-12).sqrt(), dim=-1)


def fitted(labels: Tensor, maps: Tensor) -> Tensor:
    """Labels (B, *spatial) on the grid of the maps (B, D, *spatial): the nearest label."""
    return F.interpolate(labels.unsqueeze(1).float(), maps.shape[2:], mode="nearest").squeeze(1).long()
