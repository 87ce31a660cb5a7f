"""Wide residual networks with pooled features, as the semi-supervised literature trains them."""

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional as F

SLOPE = 0.1  # of leaky ReLU
NORM = {"eps": 1e-3, "momentum": 1e-3}


class WideBlock(nn.Module):
    """Pre-activation residual block; where the width changes the activated input feeds the shortcut too."""

    def __init__(
        self, in_channels: int, out_channels: int, stride: int, activate_shortcut: bool, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.norm1 = nn.BatchNorm2d(in_channels, **NORM)  # type: ignore[arg-type]
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, stride, 1)
        self.norm2 = nn.BatchNorm2d(out_channels, **NORM)  # type: ignore[arg-type]
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, 1, 1)
        changes = in_channels != out_channels or stride != 1
        self.shortcut = nn.Conv2d(in_channels, out_channels, 1, stride) if changes else None
        self.activate_shortcut = activate_shortcut

    def forward(self, x: Tensor) -> Tensor:
        active = F.leaky_relu(self.norm1(x), SLOPE)
        out = self.conv2(self.dropout(F.leaky_relu(self.norm2(self.conv1(active)), SLOPE)))
        kept = active if self.activate_shortcut else x
        return out + (kept if self.shortcut is None else self.shortcut(kept))


class WideResNet(nn.Module):
    """Images (B, 3, H, W) to features (B, num_features).

    `blocks` residual blocks in each stage; widths of the stages, `strides` of their first blocks; dropout inside of the
    blocks, for Monte Carlo sampling.
    """

    def __init__(
        self, blocks: int, widths: Sequence[int], strides: Sequence[int], stem: int = 16, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.num_features = widths[-1]
        self.stem = nn.Conv2d(3, stem, 3, 1, 1)
        stages, before = [], stem
        for number, (width, stride) in enumerate(zip(widths, strides, strict=True)):
            first = WideBlock(before, width, stride, number == 0, dropout)
            others = (WideBlock(width, width, 1, False, dropout) for _ in range(blocks - 1))
            stages.append(nn.Sequential(first, *others))
            before = width
        self.stages = nn.Sequential(*stages)
        self.norm = nn.BatchNorm2d(before, **NORM)  # type: ignore[arg-type]
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", a=SLOPE, nonlinearity="leaky_relu")
                nn.init.zeros_(module.bias)  # type: ignore[arg-type]

    def forward(self, x: Tensor) -> Tensor:
        maps = F.leaky_relu(self.norm(self.stages(self.stem(x))), SLOPE)
        return maps.mean((-1, -2))


def wrn_28_2(dropout: float = 0.0) -> WideResNet:
    """For CIFAR-10: 128 features, 1,468,352 parameters."""
    return WideResNet(4, (32, 64, 128), (1, 2, 2), dropout=dropout)


def wrn_28_8(dropout: float = 0.0) -> WideResNet:
    """For CIFAR-100: 512 features, 23,357,792 parameters."""
    return WideResNet(4, (128, 256, 512), (1, 2, 2), dropout=dropout)


def wrn_37_2(dropout: float = 0.0) -> WideResNet:
    """For STL-10 (96 pixels): four stages, all of stride 2, 256 features, 5,931,200 parameters."""
    return WideResNet(4, (32, 64, 128, 256), (2, 2, 2, 2), dropout=dropout)


def wrn_10_1(dropout: float = 0.0) -> WideResNet:
    """For trials on a CPU: 64 features, 77,536 parameters."""
    return WideResNet(1, (16, 32, 64), (1, 2, 2), dropout=dropout)
