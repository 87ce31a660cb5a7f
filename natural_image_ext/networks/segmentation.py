"""DeepLabV3+ on the encoders of segmentation-models-pytorch: encoder, decoder to joined maps, head on those."""

from collections.abc import Sequence
from typing import Any, Literal

import torch
from segmentation_models_pytorch.decoders.deeplabv3.decoder import DeepLabV3Decoder
from torch import Tensor, nn
from torch.nn import functional as F

from medssl.core.errors import ConfigError
from medssl.networks.mc_dropout import has_dropout
from medssl.networks.sampled import SampledNetwork, Sampler
from natural_image_ext.networks.encoders import IMAGENET, load_encoder, open_encoder
from natural_image_ext.networks.heads import DrawingHead, LayeredHead, SegmentationHead
from natural_image_ext.networks.np_seg_head import Aggregator, NPSegHead

SegHeadKind = Literal["plain", "dropout", "np"]


OUTPUT_STRIDE, DILATIONS = 16, (12, 24, 36)


class JoinedMaps(nn.Module):
    """Encoder features to maps of 1/4 of the image: `channels` of context (ASPP) beside `detail` of fine detail."""

    def __init__(self, encoder_channels: Sequence[int], channels: int, detail: int) -> None:
        super().__init__()
        self.context = DeepLabV3Decoder(encoder_channels[-1], channels, DILATIONS, False, 0.0)
        self.detail = nn.Sequential(
            nn.Conv2d(encoder_channels[2], detail, 1, bias=False), nn.BatchNorm2d(detail), nn.ReLU()
        )

    def forward(self, features: Sequence[Tensor]) -> Tensor:
        detail = self.detail(features[2])
        return torch.cat([upsampled(self.context(features), detail.shape[2:]), detail], dim=1)


class SegmentationNetwork(SampledNetwork):
    """`features` gives the joined maps of images, of `channels` channels, and `head` their logits.

    arguments: those of `build_segmentation`. is_pretrained: whether the encoder's weights come from elsewhere, given
    when it was built or loaded later, and not from chance.
    """

    builder = "natural_image_ext.networks.build_segmentation"

    def __init__(
        self,
        encoder: nn.Module,
        decoder: nn.Module,
        head: SegmentationHead,
        channels: int,
        arguments: dict[str, Any] | None = None,
        is_pretrained: bool = False,
    ) -> None:
        super().__init__()
        self.encoder, self.decoder, self.head = encoder, decoder, head
        self.channels, self.arguments, self.is_pretrained = channels, arguments or {}, is_pretrained
        self.register_load_state_dict_post_hook(_note_weights)

    def features(self, images: Tensor) -> Tensor:
        """Joined maps (B, channels, H / 4, W / 4) of images (B, 3, H, W)."""
        return self.decoder(self.encoder(images))

    def forward(self, images: Tensor) -> Tensor:
        """Logits (B, C, H, W); with an `NPSegHead` the logarithms of its mean probabilities."""
        return upsampled(self.head.logits(self.features(images)), images.shape[2:])

    @property
    def draws_latents(self) -> bool:
        return isinstance(self.head, DrawingHead)

    def sampler(self, images: Tensor) -> Sampler:
        """Its probabilities are on the grid of the joined maps. The encoder sees the images once."""
        encoded = self.encoder(images)
        return self.head.sampler(lambda: self.decoder(encoded), has_dropout(self))


def _note_weights(network: SegmentationNetwork, incompatible_keys: Any) -> None:
    network.is_pretrained = True


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
    detail: int = 256,
    samples: int = 5,
    bank_size: int = 2560,
    aggregator: Aggregator = "attention",
    encoder_weights: str | None = None,
) -> SegmentationNetwork:
    """DeepLabV3+ with an encoder of smp (resnet50, ...) and one of three heads of the same width.

    head "plain" has two convolutions and a classifier; "dropout" the same with dropout after every activation of
    decoder and head; "np" the neural process. detail: channels of the fine detail beside the `channels` of context
    (256 + 256 in the thesis and U2PL, 256 + 48 in AugSeg). encoder_weights: a file with the encoder's weights,
    "imagenet" to download them, None for none.
    """
    arguments = {**locals(), "encoder_weights": None}
    if head not in ("plain", "dropout", "np"):
        raise ConfigError(f"head '{head}' is unknown. Known: plain, dropout, np.")
    backbone = open_encoder(encoder, encoder_weights == IMAGENET, OUTPUT_STRIDE)
    decoder = JoinedMaps(backbone.out_channels, channels, detail)
    joined = channels + detail
    classify: SegmentationHead = _plain_head(joined, channels, num_classes)
    if head == "np":
        classify = NPSegHead(
            joined, num_classes, samples=samples, bank_size=bank_size, width=channels, aggregator=aggregator
        )
    elif head == "dropout":
        for module in (decoder, classify):
            _drop_after_activations(module, dropout)
    if encoder_weights is not None and encoder_weights != IMAGENET:
        load_encoder(backbone, encoder_weights)
    return SegmentationNetwork(backbone, decoder, classify, joined, arguments, encoder_weights is not None)


def _plain_head(in_channels: int, width: int, num_classes: int) -> LayeredHead:
    layers: list[nn.Module] = []
    for channels in (in_channels, width):
        layers += [nn.Conv2d(channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    return LayeredHead(*layers, nn.Conv2d(width, num_classes, 1))


def _drop_after_activations(module: nn.Module, dropout: float) -> None:
    for name, child in module.named_children():
        if isinstance(child, nn.ReLU):
            setattr(module, name, nn.Sequential(child, nn.Dropout2d(dropout)))
        else:
            _drop_after_activations(child, dropout)
