"""How large scans are on the network's grid, from their headers alone; and the refusal of a patch far larger."""

from collections.abc import Iterator, Sequence
from itertools import islice

import nibabel as nib

from medssl.core.errors import ConfigError, DataError
from medssl.data.datasets import Case
from medssl.data.pipeline import Pipeline
from medssl.data.volumes import Header, read_header

READ_HEADERS = 16  # so many tell how large the scans of a data set are
PADDING = 2  # times as long as the largest scan: a patch may be so much padded

Shape = tuple[int, int, int]


def shapes_on_grid(cases: Sequence[Case], pipeline: Pipeline, count: int = READ_HEADERS) -> list[Shape]:
    """(height, width, depth) of up to `count` cases, evenly drawn, turned and resized as the network sees them.

    A file that cannot be read is passed over: the check of the cases names it.
    """
    distance = max(1, len(cases) // count)
    return list(islice(_shapes(cases[::distance], pipeline), count))


def require_fitting_patch(cases: Sequence[Case], pipeline: Pipeline) -> None:
    """ConfigError if the patch is more than twice as long as the largest scan in an axis: most would be padding."""
    patch = pipeline.geometry.patch_size
    largest = [0, 0, 0]
    for shape in _shapes(cases, pipeline):
        largest = [max(known, length) for known, length in zip(largest, shape, strict=True)]
        if all(length <= PADDING * known for length, known in zip(patch, largest, strict=True)):
            return
    if any(largest):
        fitting = [min(length, PADDING * known) for length, known in zip(patch, largest, strict=True)]
        raise ConfigError(
            f"patch_size {_text(patch)}: the largest scan has {_text(largest)} voxels after resizing. A patch may be "
            f"{PADDING} times as long in an axis. Give a --patch_size of at most {_text(fitting)}."
        )


def grid_shape(shape: Sequence[int], pipeline: Pipeline, training: bool = False) -> Shape:
    """A scan's (height, width, depth) after resizing, in training also after cropping to the region and padding.

    The region "centre" is cut in prediction, too.
    """
    geometry = pipeline.geometry
    height, width = geometry.slice_size or (shape[0], shape[1])
    depth = geometry.depth or shape[2]
    if geometry.region_size is not None and (training or pipeline.is_centred):
        height, width = min(height, geometry.region_size[0]), min(width, geometry.region_size[1])
    if training:
        patch = geometry.patch_size
        height, width, depth = max(height, patch[0]), max(width, patch[1]), max(depth, patch[2])
    return height, width, depth


def _shapes(cases: Sequence[Case], pipeline: Pipeline) -> Iterator[Shape]:
    """Shapes on the network's grid, of the cases whose header can be read."""
    for case in cases:
        try:
            shape = _turned_shape(read_header(case["image"]))
        except (DataError, KeyError, ValueError):
            continue
        yield grid_shape(shape, pipeline)


def _turned_shape(header: Header) -> Shape:
    """The lengths of the axes from left to right, back to front and bottom to top; ValueError if there are none."""
    targets = nib.orientations.io_orientation(header.affine)[:, 0]
    length_of = dict(zip((int(target) for target in targets), header.shape, strict=True))
    return length_of[0], length_of[1], length_of[2]


def _text(size: Sequence[int]) -> str:
    return ",".join(str(length) for length in size)
