"""How soon a reviewer meets the errors of one case, who looks at its slices or voxels in some order."""

import math
from dataclasses import dataclass

import numpy as np
from scipy import ndimage
from scipy.integrate import trapezoid

from medssl.uncertainty.ranking import slice_needs

UNITS = ("slices", "voxels")
ORDERS = ("uncertainty", "contour", "random", "oracle")


@dataclass(frozen=True)
class Curve:
    """Rising shares in [0, 1]: what was inspected, and how much of all errors was found by then."""

    inspected: np.ndarray
    found: np.ndarray

    @property
    def area(self) -> float:
        """Area below the curve: 0.5 for a random order, in the mean."""
        return float(trapezoid(self.found, self.inspected))

    def at(self, inspected: np.ndarray) -> np.ndarray:
        """Share of the errors found after these shares of the work."""
        return np.interp(inspected, self.inspected, self.found)


def discovery_curve(errors: np.ndarray, priority: np.ndarray) -> Curve:
    """Units (slices, voxels) with these numbers of errors are inspected by falling priority.

    Units of the same priority come in random order; the curve is the mean over those. Without an error it is NaN.
    """
    order = np.argsort(-priority, kind="stable")
    ranked = priority[order]
    last_of_its_rank = np.append(ranked[1:] != ranked[:-1], True)
    found = np.cumsum(errors[order], dtype=np.float64)[last_of_its_rank]
    inspected = np.flatnonzero(last_of_its_rank) + 1
    total = found[-1] if found[-1] > 0 else math.nan
    return Curve(np.append(0, inspected) / len(errors), np.append(0, found) / total)


def case_curves(
    segmentation: np.ndarray, entropy: np.ndarray, label: np.ndarray, spacing_mm: tuple[float, ...]
) -> dict[tuple[str, str], Curve]:
    """(unit, order) -> curve, for all UNITS and ORDERS; an error is a voxel whose class is not the label's.

    "contour" needs no uncertainty: voxels near the predicted contour first, slices with the longest contour first. An
    uncertainty that is nothing but a blurred contour is no better than that.
    """
    errors = (segmentation != label).astype(np.float64)
    needs = slice_needs(segmentation, entropy, spacing_mm)
    needed = np.empty(len(needs))
    needed[[need.index for need in needs]] = [need.entropy_bits for need in needs]
    border = contour(segmentation)
    across = tuple(axis for axis in range(errors.ndim) if axis != needs[0].axis)
    near = -ndimage.distance_transform_edt(~border, sampling=spacing_mm) if border.any() else np.zeros(border.shape)
    by_slice, by_voxel = errors.sum(axis=across), errors.ravel()
    units = {
        "slices": (by_slice, (needed, border.sum(axis=across), np.zeros(len(by_slice)), by_slice)),
        "voxels": (by_voxel, (entropy.ravel(), near.ravel(), np.zeros(len(by_voxel)), by_voxel)),
    }
    return {
        (unit, order): discovery_curve(found, priority)
        for unit, (found, priorities) in units.items()
        for order, priority in zip(ORDERS, priorities, strict=True)
    }


def contour(segmentation: np.ndarray) -> np.ndarray:
    """True for voxels with a face to a voxel of another class."""
    edges = np.zeros(segmentation.shape, dtype=bool)
    for axis in range(segmentation.ndim):
        differ = np.diff(segmentation, axis=axis) != 0
        low, high = ([slice(None)] * segmentation.ndim for _ in range(2))
        low[axis], high[axis] = slice(None, -1), slice(1, None)
        edges[tuple(low)] |= differ
        edges[tuple(high)] |= differ
    return edges
