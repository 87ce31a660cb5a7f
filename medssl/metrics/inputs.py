"""What the metrics accept: numpy arrays or torch tensors, checked once and turned into numpy."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from medssl.core.errors import DataError

Values: TypeAlias = np.ndarray | Tensor
Array: TypeAlias = np.ndarray[Any, Any]


def as_array(values: Values) -> Array:
    """The values as a numpy array on the CPU, copied only where torch must."""
    if not isinstance(values, Tensor):
        return np.asarray(values)
    values = values.detach().cpu()
    # numpy has no bfloat16
    return np.asarray((values.float() if values.dtype is torch.bfloat16 else values).numpy())


def boolean_mask(mask: Values, name: str) -> Array:
    """The mask as booleans; raises DataError where it holds anything but 0 and 1."""
    array = as_array(mask)
    if array.dtype == np.bool_:
        return array
    ones: Array = array == 1
    if not (ones | (array == 0)).all():
        raise DataError(
            f"{name}: values from {array.min()} to {array.max()}, expected only 0 and 1. "
            "Give one class at a time, for example `label == 1`."
        )
    return ones


def boolean_pair(prediction: Values, label: Values) -> tuple[Array, Array]:
    """Both masks as booleans; raises DataError where shapes differ or values are not 0 and 1."""
    check_same_shape(prediction, label, "prediction", "label")
    return boolean_mask(prediction, "prediction"), boolean_mask(label, "label")


def check_same_shape(first: Values, second: Values, first_name: str, second_name: str) -> None:
    """Raises DataError with both shapes where they differ, since numpy would broadcast them without a word."""
    if np.shape(first) != np.shape(second):
        raise DataError(
            f"{first_name} has shape {tuple(np.shape(first))}, {second_name} has {tuple(np.shape(second))}. "
            "Bring both onto the same grid first."
        )


def positive_spacing_mm(spacing_mm: Sequence[float] | Values, dimensions: int) -> Array:
    """The spacing as float64, one value per axis; raises DataError where one is missing or not above 0."""
    spacing = np.asarray(spacing_mm, dtype=np.float64)
    if spacing.shape != (dimensions,):
        raise DataError(f"spacing {spacing.tolist()} mm, expected one value for each of the mask's {dimensions} axes.")
    if not (np.isfinite(spacing).all() and (spacing > 0).all()):
        raise DataError(f"spacing {spacing.tolist()} mm, expected finite values above 0. Check the image's header.")
    return spacing
