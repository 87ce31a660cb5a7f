"""Int8 graphs of a network by post-training quantisation, calibrated on windows of the scans it was trained with."""

import logging
import random
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from torch import Tensor

from medssl.core.errors import ConfigError
from medssl.core.progress import tracked
from medssl.core.seeding import derive_seed
from medssl.data.datasets import Case
from medssl.data.pipeline import Pipeline
from medssl.inference.backends.openvino import compiled, converted, import_openvino
from medssl.inference.mc_dropout import pad_to_window
from medssl.inference.windows import box
from medssl.networks.mc_dropout import generator_of

# Instance norm would stretch the rounding of a channel with small values; OpenVINO runs the convolution after a pooling
# of int8 in float32; the rest takes no time.
IN_FLOAT32 = ("MVN", "MaxPool", "Interpolate", "Multiply")


def calibration_windows(
    cases: Sequence[Case], pipeline: Pipeline, window: Sequence[int], number: int, seed: int = 0
) -> list[Tensor]:
    """`number` windows (1, C, *window) at random places of `cases`, as they are prepared for prediction.

    At most `number` of the cases are read, drawn by `seed`; each gives as many windows as the next, or one more.
    """
    draw = random.Random(derive_seed(seed, "calibration windows"))  # noqa: S311  (a sample, no secret)
    chosen = draw.sample(list(cases), min(number, len(cases)))
    preparation = pipeline.preprocessing(with_label=False)
    windows = []
    for place, case in enumerate(tracked(chosen, "reading", "scans")):
        image, _ = pad_to_window(preparation(case)["image"].as_tensor()[None], window)
        for _ in range(place, number, len(chosen)):
            start = [draw.randint(0, length - w) for length, w in zip(image.shape[2:], window, strict=True)]
            windows.append(image[box(start, window)].clone())
    return windows


def quantised_models(network: Any, windows: Sequence[Tensor], seed: int = 0) -> tuple[Any, Any]:
    """Encoder and decoder of `network` as OpenVINO models: convolutions in int8 but for the first and the classifier.

    windows: (1, C, *window) each, what the ranges of the activations are read from. The decoder sees what the int8
    encoder makes of them, each with dropout masks of its own, as in sampling. ConfigError without the extra `int8`.
    """
    encoder, decoder = converted(network, windows[0].shape[2:])
    first, classifier = _convolutions(encoder)[0], _convolutions(decoder)[-1]
    encoder = _quantised(encoder, len(windows), lambda number: [windows[number].numpy(force=True)], first)
    encode = compiled(encoder)

    def features_and_masks(number: int) -> list[np.ndarray]:
        features = encode([windows[number].numpy(force=True)])
        masks = network.draw_masks(generator_of(derive_seed(seed, "calibration masks", number)))
        return [*(features[level].copy() for level in range(len(features))), *(mask.numpy() for mask in masks)]

    return encoder, _quantised(decoder, len(windows), features_and_masks, classifier)


def import_nncf() -> ModuleType:
    """NNCF without its telemetry, which is that of OpenVINO; ConfigError says how to get it where it is missing."""
    import_openvino()
    try:
        import nncf  # noqa: PLC0415  (an extra)
    except ImportError as error:
        raise ConfigError("medssl quantise: nncf is not installed. Run: pip install 'medssl[int8]'") from error
    logging.getLogger("nncf").setLevel(logging.WARNING)  # it names every node that it leaves alone
    return nncf


def _convolutions(model: Any) -> list[str]:
    """The names of its convolutions, in the order in which they are computed."""
    return [node.get_friendly_name() for node in model.get_ordered_ops() if node.get_type_name() == "Convolution"]


def _quantised(model: Any, number: int, inputs_of: Callable[[int], list[np.ndarray]], in_float32: str) -> Any:
    """The model in int8 but for IN_FLOAT32 and one named node; `inputs_of` gives each of `number` sets of inputs."""
    nncf = import_nncf()
    return nncf.quantize(
        model,
        nncf.Dataset(range(number), inputs_of),
        subset_size=number,
        ignored_scope=nncf.IgnoredScope(names=[in_float32], types=list(IN_FLOAT32), validate=False),
        # it would correct biases, and instance norm takes those away
        advanced_parameters=nncf.AdvancedQuantizationParameters(disable_bias_correction=True),
    )
