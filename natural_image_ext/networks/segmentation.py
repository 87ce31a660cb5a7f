"""DeepLabV3+ of segmentation-models-pytorch, taken apart: encoder, decoder up to the joined maps, head on them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import segmentation_models_pytorch as smp
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from medssl.engine.checkpoint import load_tensors
from medssl.errors import CheckpointError, ConfigError
from natural_image_ext.networks.np_seg_head import Aggregator, NPSegHead, NPSegOutput

SegHeadKind = Literal["plain", "dropout", "np"]


class JoinedMaps(nn.Module):
    """Encoder features to maps of 1/4 of the image: context (ASPP) beside fine detail, 304 channels by default."""

    def __init__(self, context: nn.Module, detail: nn.Module) -> None:
        super().__init__()
        self.context, self.detail = context, detail

    def forward(self, features: Sequence[Tensor]) -> Tensor:
        detail = self.detail(features[2])
        context = F.interpolate(self.context(features[-1]), detail.shape[2:], mode="bilinear", align_corners=True)
        return torch.cat([context, detail], dim=1)


class SegmentationNetwork(nn.Module):
    """`features` gives the joined maps of images, of `channels` channels, and `head` their logits.

    arguments: those of `build_segmentation`.
    """

    def __init__(
        self,
        encoder: nn.Module,
        decoder: nn.Module,
        head: nn.Module,
        channels: int,
        arguments: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.encoder, self.decoder, self.head = encoder, decoder, head
        self.channels, self.arguments = channels, arguments or {}

    def features(self, images: Tensor) -> Tensor:
        """Joined maps (B, channels, H / 4, W / 4) of images (B, 3, H, W)."""
        return self.decoder(self.encoder(images))

    def forward(self, images: Tensor) -> Tensor:
        """Logits (B, C, H, W); with an `NPSegHead` the logarithms of its mean probabilities."""
        output = self.head(self.features(images))
        if isinstance(output, NPSegOutput):
            output = output.probs.clamp_min(torch.finfo(output.logits.dtype).tiny).log()
        return upsampled(output, images.shape[2:])


def upsampled(maps: Tensor, size: Sequence[int]) -> Tensor:
    """Maps (B, C, *spatial) on a finer grid, linearly."""
    mode = "bilinear" if maps.ndim == 4 else "trilinear"
    return F.interpolate(maps, tuple(size), mode=mode, align_corners=True)


def build_segmentation(
    encoder: str,
    num_classes: int,
    head: SegHeadKind = "np",
    dropout: float = 0.1,
    channels: int = 256,
    samples: int = 5,
    bank_size: int = 2560,
    aggregator: Aggregator = "attention",
    encoder_weights: str | None = None,
) -> SegmentationNetwork:
    """DeepLabV3+ with an encoder of smp (resnet50, ...) and one of three heads.

    head "plain" is DeepLabV3+'s own; "dropout" the same with dropout after every activation of decoder and head; "np"
    the neural process. encoder_weights: a file with the encoder's weights, "imagenet" to download them, None for none.
    """
    arguments = {**locals(), "encoder_weights": None}
    if head not in ("plain", "dropout", "np"):
        raise ConfigError(f"head '{head}' is unknown. Known: plain, dropout, np.")
    model = smp.DeepLabV3Plus(
        encoder,
        encoder_weights="imagenet" if encoder_weights == "imagenet" else None,
        decoder_channels=channels,
        decoder_aspp_separable=False,
        decoder_aspp_dropout=0.0,
        classes=num_classes,
    )
    decoder = JoinedMaps(model.decoder.aspp, model.decoder.block1)
    classify: nn.Module = nn.Sequential(model.decoder.block2, model.segmentation_head[0])
    joined = channels + model.decoder.block1[0].out_channels
    if head == "np":
        classify = NPSegHead(joined, num_classes, samples=samples, bank_size=bank_size, aggregator=aggregator)
    elif head == "dropout":
        for module in (decoder, classify):
            _drop_after_activations(module, dropout)
    if encoder_weights not in (None, "imagenet"):
        load_encoder(model.encoder, encoder_weights)
    return SegmentationNetwork(model.encoder, decoder, classify, joined, arguments)


def load_encoder(encoder: nn.Module, file: str | Path) -> None:
    """Load weights stored at `file` (torchvision's and timm's names are smp's); CheckpointError if they do not fit."""
    weights = {name: value for name, value in load_tensors(file).items() if not name.startswith(("fc.", "classifier."))}
    known = encoder.state_dict()
    fitting = {name for name, value in weights.items() if name in known and known[name].shape == value.shape}
    missing = [name for name in known if name not in fitting]
    if missing:
        raise CheckpointError(f"{file}: lacks {len(missing)} of the encoder's weights, first '{missing[0]}'.")
    encoder.load_state_dict({name: weights[name] for name in fitting})


def _drop_after_activations(module: nn.Module, dropout: float) -> None:
    for name, child in module.named_children():
        if isinstance(child, nn.ReLU):
            setattr(module, name, nn.Sequential(child, nn.Dropout2d(dropout)))
        else:
            _drop_after_activations(child, dropout)
