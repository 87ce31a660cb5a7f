"""The regular 3D-UNet with MC dropout of the thesis (section 3.3.2 and appendix A)."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from medssl.networks.blocks import Decoder, Encoder, initialise
from medssl.networks.channel_drop import decode_kept
from medssl.networks.mc_dropout import dropout_mask

THESIS_WIDTHS = (32, 64, 96, 192, 384)


class MCDropoutUNet3D(nn.Module):
    """Depth-preserving 3D-UNet with channel dropout on the input of every decoder block.

    Takes (batch, in_channels, height, width, depth), returns logits (batch, out_channels, height, width, depth).
    Height and width are halved between levels, depth never; sizes need not be divisible, but the coarsest level needs
    more than one voxel to be normalised. With the thesis' widths it has 9,598,466 parameters for 3 input channels and 2
    classes. Dropout follows `train()` and `eval()`; sampling at test time is asked for with
    `medssl.networks.mc_dropout(network)`, which switches on the dropout layers only.
    """

    def __init__(
        self,
        in_channels: int = 1,
        out_channels: int = 2,
        widths: Sequence[int] = THESIS_WIDTHS,
        dropout: float = 0.3,
    ) -> None:
        super().__init__()
        widths = tuple(widths)
        if len(widths) < 2:
            raise ValueError(f"widths {widths}: a UNet needs at least two levels")
        self.arguments = {
            "in_channels": in_channels,
            "out_channels": out_channels,
            "widths": list(widths),
            "dropout": dropout,
        }
        self.encoder = Encoder(in_channels, widths)
        self.decoder = Decoder(widths[-1], widths, dropout)
        self.classifier = nn.Conv3d(widths[0], out_channels, 1)
        initialise(self)

    def encode(self, x: Tensor) -> list[Tensor]:
        """Encoder features, finest first: the deterministic part, shared by all Monte Carlo samples."""
        return self.encoder(x)

    def decode(self, features: list[Tensor], masks: list[Tensor] | None = None) -> Tensor:
        """Logits from encoder features: the part with dropout, by `masks`, or drawn at each call in sampling mode."""
        return self.classifier(self.decoder(features[-1], features, masks))

    @torch.jit.unused
    def draw_masks(self, generator: torch.Generator) -> list[Tensor]:
        """One dropout mask (1, channels) for each decoder block, as dropout would draw them."""
        convolutions = [block[0] for block in self.decoder.blocks]  # type: ignore[index]
        return [dropout_mask((1, conv.in_channels), self.decoder.dropout.p, generator) for conv in convolutions]

    @torch.jit.unused
    def decode_kept(self, features: list[Tensor], masks: list[Tensor]) -> Tensor:
        """`decode` of one window's features that computes only the channels that `masks` keep."""
        return self.classifier(decode_kept(self.decoder, features, masks))

    def forward(self, x: Tensor) -> Tensor:
        return self.decode(self.encode(x))
