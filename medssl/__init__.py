"""medssl: 3-D segmentation from few labels and many scans, with voxel-wise uncertainty, through stock MONAI."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("medssl")
except PackageNotFoundError:  # a source tree that was not installed
    __version__ = "0+unknown"
