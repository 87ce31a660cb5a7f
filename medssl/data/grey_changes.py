"""Changes of grey of an image (3, H, W) of bytes: brightness, contrast, blur, fewer greys; places stay.

In plain torch, with the numbers that torchvision's functions of the same names give.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

CHANNEL_SHARES = (0.2989, 0.587, 0.114)  # of red, green and blue in grey; slices keep them, so that old runs repeat
BLUR_WIDTH = 5


def blurred_or_jittered(image: Tensor) -> Tensor:
    """Brightness and contrast by 0.5 to 1.5 in either order (four times of five), then a blur (every other time)."""
    if torch.rand(1) < 0.8:
        order = torch.randperm(4).tolist()  # of four jitters, of which two are of colour and left out
        brightness, contrast = _drawn(0.5, 1.5), _drawn(0.5, 1.5)
        for number in order:
            if number == 0:
                image = brightened(image, brightness)
            elif number == 1:
                image = contrasted(image, contrast)
    if torch.rand(1) < 0.5:
        image = blurred(image, _drawn(0.1, 2.0))
    return image


def up_to_three_changes(image: Tensor) -> Tensor:
    """AugSeg's strong view: one to three different changes, each with a strength drawn evenly."""
    number = int(torch.randint(1, 4, ()))
    for place in torch.randperm(len(CHANGES))[:number].tolist():
        least, most, change = CHANGES[place]
        image = change(image, least + (most - least) * torch.rand(()).item())
    return image


def brightened(image: Tensor, factor: float) -> Tensor:
    """All values times `factor`."""
    return (image * factor).clamp(0, 255).to(torch.uint8)


def contrasted(image: Tensor, factor: float) -> Tensor:
    """All values `factor` times as far from the mean grey of the image."""
    red, green, blue = image
    grey = (red * CHANNEL_SHARES[0]).add(green, alpha=CHANNEL_SHARES[1]).add(blue, alpha=CHANNEL_SHARES[2])
    mean = grey.floor().mean()
    return (image * factor).add(mean, alpha=1.0 - factor).clamp(0, 255).to(torch.uint8)


def stretched(image: Tensor) -> Tensor:
    """Each channel from black to white; one of a single value stays."""
    values = image.float()
    least, most = values.amin((-2, -1), keepdim=True), values.amax((-2, -1), keepdim=True)
    step = (most - least) * (1.0 / 255)
    wide = ((values - least) / step).clamp(0, 255).to(torch.uint8)
    return torch.where(most == least, image, wide)


def equalised(image: Tensor) -> Tensor:
    """Each channel with about as many pixels of every grey; one of too few pixels or greys stays."""
    return torch.stack([_equalised_channel(channel) for channel in image])


def _equalised_channel(channel: Tensor) -> Tensor:
    greys = channel.flatten().long()
    counts = torch.bincount(greys, minlength=256)
    step = int(len(greys) - counts[greys.max()]) // 255
    if step == 0:
        return channel
    darker = counts.cumsum(0) - counts
    table = ((darker + step // 2) // step).clamp(0, 255).to(torch.uint8)
    return table[greys].view_as(channel)


def blurred(image: Tensor, sigma: float) -> Tensor:
    """Convolved with a Gaussian of `sigma` pixels, 5 pixels wide; the image is mirrored at its border."""
    reach = (BLUR_WIDTH - 1) / (2 * math.sqrt(2))
    line = torch.softmax(-(torch.linspace(-reach, reach, BLUR_WIDTH) / sigma).square(), dim=0)
    kernel = (line.unsqueeze(1) * line).expand(len(image), 1, BLUR_WIDTH, BLUR_WIDTH)
    mirrored = F.pad(image.float()[None], [BLUR_WIDTH // 2] * 4, mode="reflect")
    return F.conv2d(mirrored, kernel, groups=len(image))[0].round().to(torch.uint8)


def posterised(image: Tensor, bits: int) -> Tensor:
    """The first `bits` of the 8 of every value."""
    return image if bits >= 8 else image & (256 - (1 << (8 - bits)))


def _drawn(least: float, most: float) -> float:
    return torch.empty(1).uniform_(least, most).item()


# least and most strength, and what is done with it
CHANGES: list[tuple[float, float, Callable[[Tensor, float], Tensor]]] = [
    (0.0, 1.0, lambda image, _: image),
    (0.0, 1.0, lambda image, _: stretched(image)),
    (0.0, 1.0, lambda image, _: equalised(image)),
    (0.1, 2.0, blurred),
    (0.5, 1.5, contrasted),
    (0.5, 1.5, brightened),
    (4.0, 8.0, lambda image, strength: posterised(image, int(strength))),
]
