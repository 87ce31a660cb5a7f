"""A network that tells predicted maps of labelled patches from those of unlabelled ones."""

from torch import Tensor, nn


class Discriminator(nn.Module):
    """One logit (B,) for maps (B, maps, *spatial) and the images they belong to: above 0 means labelled.

    axes: 2 or 3 spatial ones. Four convolutions of stride 2, the first for maps and images apart and then summed, and
    a mean over what is left, so that patches may have any size.
    """

    def __init__(self, maps: int, axes: int, width: int = 16, in_channels: int = 1) -> None:
        super().__init__()
        kind = nn.Conv3d if axes == 3 else nn.Conv2d
        self.of_maps = kind(maps, width, 3, stride=2, padding=1)
        self.of_images = kind(in_channels, width, 3, stride=2, padding=1)
        layers: list[nn.Module] = [nn.LeakyReLU(0.2)]
        for level in range(3):
            channels = width * 2**level
            layers += [kind(channels, 2 * channels, 3, stride=2, padding=1), nn.LeakyReLU(0.2)]
        self.layers = nn.Sequential(*layers)
        self.classifier = nn.Linear(8 * width, 1)

    def forward(self, maps: Tensor, images: Tensor) -> Tensor:
        features = self.layers(self.of_maps(maps) + self.of_images(images))
        return self.classifier(features.flatten(2).mean(2)).squeeze(1)
