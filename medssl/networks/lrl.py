"""Latent representation learning (LRL), the generative network of GBDL (thesis, section 3.3 and appendix A)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from medssl.distributions.gaussian import CovarianceForm, IndependentGaussians, RankOneGaussians
from medssl.networks.blocks import Decoder, Encoder, at_least_two, initialise
from medssl.networks.latent import SliceToVector, VectorToSlice, bounded

LatentKind = Literal["slices", "volume", "independent"]
LRL_WIDTHS = (64, 128, 256, 512, 512)
DECODED_AT_ONCE = 4  # patches: at full size one takes about 1 GB of memory


@dataclass(frozen=True)
class LRLOutput:
    """What one pass gives: label logits of the patches that were asked for, latent Gaussians, and the reconstruction.

    latent and reconstruction are None where nothing uses them.
    """

    logits: Tensor
    latent: RankOneGaussians | IndependentGaussians | None
    reconstruction: Tensor | None


class LRL(nn.Module):
    """Encoder X and encoder 2, latent Gaussians of the slices, a reconstruction decoder and a label decoder.

    Takes (B, in_channels, height, width, depth) with height and width as in `patch_size`; depth is free. The latent z
    of every slice comes from encoder X; the label decoder gets encoder 2's features joined with the map of z.

    Options, the thesis' first: covariance "thesis" or "released" with its c; latent "slices", one Gaussian for the
    whole "volume", or "independent" components (IC-LRL, variance v^2 + c); shared_head: mean and v share their
    convolution (released); label_bottleneck: encoder 2's features pass a 256-d bottleneck (released); last_kernel 3 or
    1 (released); with_reconstruction False removes that path; shared_encoder uses one encoder for both; shared_decoder
    uses one for both from its second block on (the first takes maps of another width); with_z False leaves z out of
    the label branch. Ours: v_bound limits the length of v; label_skips and image_skips False cut a
    decoder off from its encoder's finer features; with_label_features False keeps encoder 2's coarsest map out of the
    label decoder too, so that labels come from z alone; reconstruction_level k paints the scan 2^k times coarser.
    """

    def __init__(
        self,
        in_channels: int = 1,
        out_channels: int = 2,
        patch_size: Sequence[int] = (128, 128, 32),
        widths: Sequence[int] = LRL_WIDTHS,
        latent_dim: int = 256,
        c: float = 1.0,
        covariance: CovarianceForm = "thesis",
        latent: LatentKind = "slices",
        v_bound: float | None = None,
        shared_head: bool = False,
        label_bottleneck: bool = False,
        last_kernel: int = 3,
        with_reconstruction: bool = True,
        shared_encoder: bool = False,
        shared_decoder: bool = False,
        with_z: bool = True,
        label_skips: bool = True,
        image_skips: bool = True,
        with_label_features: bool = True,
        reconstruction_level: int = 0,
    ) -> None:
        super().__init__()
        widths = tuple(widths)
        if latent not in ("slices", "volume", "independent"):
            raise ValueError(f"latent '{latent}' is unknown: slices, volume or independent")
        if not 0 <= reconstruction_level < len(widths) - 1:
            raise ValueError(f"reconstruction_level {reconstruction_level}: 0 to {len(widths) - 2} for widths {widths}")
        if not with_reconstruction and (reconstruction_level or not image_skips):
            raise ValueError("there is no reconstruction whose skips or level could be changed")
        if shared_decoder and (not with_reconstruction or reconstruction_level or label_skips != image_skips):
            raise ValueError("the decoders can share only blocks of the same size: both need the same skips and level")
        if latent == "independent" and covariance != "thesis":
            raise ValueError("independent components have no covariance form")
        if not (with_z or with_label_features):
            raise ValueError("the label decoder needs z or the features of its encoder")
        self.c, self.covariance, self.latent_kind, self.v_bound = c, covariance, latent, v_bound
        self.with_z, self.with_label_features, self.shared_decoder = with_z, with_label_features, shared_decoder
        self.reconstruction_level = reconstruction_level
        coarse = _coarsest(patch_size, len(widths))
        bottom = widths[-1]
        self.image_encoder = Encoder(in_channels, widths, widen_first=True)
        self.label_encoder = self.image_encoder if shared_encoder else Encoder(in_channels, widths, widen_first=True)
        self.to_mean = SliceToVector(bottom, coarse, latent_dim)
        self.to_v = SliceToVector(bottom, coarse, latent_dim, self.to_mean.shrink if shared_head else None)
        self.to_map = VectorToSlice(bottom, coarse, latent_dim)
        self.label_bottleneck: nn.Module = nn.Identity()
        if label_bottleneck:
            self.label_bottleneck = nn.Sequential(
                SliceToVector(bottom, coarse, latent_dim), VectorToSlice(bottom, coarse, latent_dim)
            )
        self.label_decoder = Decoder(bottom * (with_z + with_label_features), widths, skips=label_skips)
        self.classifier = nn.Conv3d(widths[0], out_channels, last_kernel, padding=last_kernel // 2)
        painted = widths[reconstruction_level:]
        self.image_decoder = Decoder(bottom, painted, skips=image_skips) if with_reconstruction else None
        if shared_decoder and self.image_decoder is not None:
            for level in range(1, len(self.label_decoder.blocks)):
                self.image_decoder.blocks[level] = self.label_decoder.blocks[level]
        self.painter = nn.Conv3d(painted[0], in_channels, 3, padding=1) if with_reconstruction else None
        self.uses_latent = with_z or with_reconstruction
        if not self.uses_latent:
            for unused in (self.to_mean, self.to_v, self.to_map, *([] if shared_encoder else [self.image_encoder])):
                unused.requires_grad_(False)
        initialise(self)

    def forward(self, x: Tensor, labelled: Tensor | None = None) -> LRLOutput:
        """All that the losses need. labelled (B,) bool: the patches whose logits are wanted, all by default."""
        wanted = slice(None) if labelled is None else labelled
        if not self.uses_latent:
            return LRLOutput(self.label_logits(self.label_encoder(x[wanted]), None), None, None)
        image_features = self.image_encoder(x)
        latent = self.latent_of(image_features[-1])
        z_map = self.map_of(latent.sample(), x.shape[-1])
        reconstruction = None
        if self.image_decoder is not None and self.painter is not None:
            features = image_features[self.reconstruction_level :]
            reconstruction = torch.tanh(self.painter(self.image_decoder(z_map, features)))
        label_features = self.label_features(x, image_features, wanted)
        return LRLOutput(self.label_logits(label_features, z_map[wanted]), latent, reconstruction)

    def label_features(self, x: Tensor, image_features: list[Tensor], wanted: Tensor | slice) -> list[Tensor]:
        """Encoder 2's features of the wanted patches, or encoder X's where the two are one."""
        if self.label_encoder is self.image_encoder:
            return [features[wanted] for features in image_features]
        return self.label_encoder(x[wanted])

    def latent_of(self, bottom: Tensor) -> RankOneGaussians | IndependentGaussians:
        """The posterior Q(Z | X) of every slice, or of the mean slice for "volume", from encoder X's coarsest map."""
        if self.latent_kind == "volume":
            bottom = bottom.mean(-1, keepdim=True)
        mean, v = self.to_mean(bottom), bounded(self.to_v(bottom), self.v_bound)
        if self.latent_kind == "independent":
            return IndependentGaussians(mean, v.square() + self.c)
        return RankOneGaussians(mean, v, self.c, self.covariance)

    def map_of(self, z: Tensor, depth: int) -> Tensor:
        """Z as feature maps of `depth` slices; one z for the whole volume is given to each of them."""
        return self.to_map(z.expand(-1, depth, -1) if self.latent_kind == "volume" else z)

    def label_logits(self, label_features: list[Tensor], z_map: Tensor | None) -> Tensor:
        """Logits (B, out_channels, ...) from encoder 2's features and the map of z, each as far as it is used."""
        parts = [self.label_bottleneck(label_features[-1])] if self.with_label_features else []
        if self.with_z and z_map is not None:
            parts.append(z_map)
        return self.classifier(self.label_decoder(torch.cat(parts, dim=1), label_features))

    @torch.no_grad()
    def pseudo_label_samples(self, x: Tensor, samples: int) -> Tensor:
        """`samples` draws of label probabilities, (samples, B, C, ...); encoders run once, decoders by groups."""
        if not self.with_z:
            probs = torch.softmax(self.label_logits(self.label_encoder(at_least_two(x)), None), dim=1)[: len(x)]
            return probs.expand(samples, *probs.shape)
        image_features = self.image_encoder(at_least_two(x))
        every = self.label_features(at_least_two(x), image_features, slice(None))
        label_features = [features[: len(x)] for features in every]
        latent = self.latent_of(image_features[-1][: len(x)])
        groups = torch.arange(samples).tensor_split(max(1, -(-samples * len(x) // DECODED_AT_ONCE)))
        draws = [self._decoded_draws(latent, label_features, len(group)) for group in groups if len(group)]
        return torch.cat(draws)

    def _decoded_draws(
        self, latent: RankOneGaussians | IndependentGaussians, label_features: list[Tensor], draws: int
    ) -> Tensor:
        """(draws, B, C, ...) label probabilities, decoded as one batch."""
        depth = label_features[0].shape[-1]
        z_maps = torch.cat([self.map_of(latent.sample(), depth) for _ in range(draws)])
        repeated = [features.repeat(draws, 1, 1, 1, 1) for features in label_features]
        return torch.softmax(self.label_logits(repeated, z_maps), dim=1).unflatten(0, (draws, -1))

    def get_extra_state(self) -> dict[str, Any]:
        """What the weights do not show, so that a checkpoint knows which latent it belongs to."""
        state = {"c": self.c, "covariance": self.covariance, "latent": self.latent_kind, "v_bound": self.v_bound}
        return state | ({"shared_decoder": True} if self.shared_decoder else {})

    def set_extra_state(self, state: dict[str, Any]) -> None:
        if state != self.get_extra_state():
            raise ValueError(f"LRL was trained with {state}, here it has {self.get_extra_state()}")


def reconstruction_target(x: Tensor, reconstruction: Tensor) -> Tensor:
    """What a reconstruction is compared with: the patch at its resolution, in tanh's range, which jitter leaves."""
    return F.adaptive_avg_pool3d(x, tuple(reconstruction.shape[2:])).clamp(-1, 1)  # type: ignore[arg-type]


def _coarsest(patch_size: Sequence[int], levels: int) -> tuple[int, int]:
    """Height and width of the coarsest map: halved (rounded up) once between two levels."""
    height, width = int(patch_size[0]), int(patch_size[1])
    for _ in range(levels - 1):
        height, width = (height + 1) // 2, (width + 1) // 2
    return height, width
