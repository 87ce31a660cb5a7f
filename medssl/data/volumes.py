"""Reading and writing 3-D volumes: NIfTI, NRRD, MetaImage, HDF5 and DICOM series through one function.

An address is a path, or `file.h5::key` for a dataset inside an HDF5 file. Every fault of a file is a DataError
that names the file, what was found, what was expected and the way out.
"""

import gzip
import hashlib
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
from monai.config import KeysCollection
from monai.data import ImageReader, MetaTensor
from monai.transforms import MapTransform
from monai.utils import ImageMetaKey, MetaKeys, SpaceKeys, ensure_tuple

from medssl.core.errors import DataError
from medssl.core.files import write_bytes_atomically
from medssl.data.findings import volume_error
from medssl.data.formats import COPY_AGAIN, HDF5_SUFFIXES, SUPPORTED, Opened, opener_of
from medssl.data.voxel_grid import Header, Volume

__all__ = [
    "MAX_BYTES",
    "Header",
    "LoadVolumed",
    "Volume",
    "VolumeReader",
    "content_digest",
    "read_header",
    "read_volume",
    "split_address",
    "write_nifti",
]

MAX_BYTES = 4 * 2**30


def read_volume(address: str | Path) -> Volume:
    """Volume at the address: (X, Y, Z) and its RAS affine.

    Integers stay as stored; floats, rescaled integers and DICOM come as float32. Raises DataError for whatever part B
    of docs/reliability.md calls unreadable; the values themselves are judged by medssl.data.validate.
    """
    with _open(address) as (header, voxels):
        shape = _checked_shape(address, header)
        array = voxels().reshape(shape, order="A")
    return Volume(array.astype(_returned_dtype(array.dtype), copy=False), header.affine)


def read_header(address: str | Path) -> Header:
    """Shape, affine and dtype of the volume at the address without reading voxels. Raises DataError as read_volume."""
    with _open(address) as (header, _):
        return Header(_checked_shape(address, header), header.affine, _returned_dtype(header.dtype))


def split_address(address: str | Path) -> tuple[Path, str]:
    """File or folder of an address and the key inside of it: `a/b.h5::image` is (a/b.h5, image), others have no key."""
    for suffix in HDF5_SUFFIXES:
        path, mark, key = str(address).partition(f"{suffix}::")
        if mark:
            return Path(path + suffix), key
    return Path(address), ""


def content_digest(address: str | Path) -> str:
    """16 hex digits that change with any byte of the scan's files."""
    path = split_address(address)[0]
    digest = hashlib.sha256()
    for file in sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]:
        with file.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()[:16]


class VolumeReader(ImageReader):
    """Reader for monai.transforms.LoadImaged that takes every address read_volume takes.

    LoadImaged converts to float32 by default: right for images. Load label maps with `dtype=None` to keep integers.
    """

    def verify_suffix(self, filename: Sequence[Any] | Any) -> bool:
        return all(opener_of(split_address(name)[0]) is not None for name in ensure_tuple(filename))

    def read(self, data: Sequence[Any] | Any, **kwargs: Any) -> list[str]:
        """The addresses, unread: LoadImage hides an error raised here behind "cannot find a suitable reader"."""
        return [str(name) for name in ensure_tuple(data)]

    def get_data(self, img: list[str]) -> tuple[np.ndarray, dict]:
        """Array (X, Y, Z) and MONAI's metadata of the one address. Raises DataError."""
        if len(img) != 1:
            raise DataError(f"{img[0]}: {len(img)} files for one key, expected 1. Merge the channels into one file.")
        volume = read_volume(img[0])
        meta = {
            MetaKeys.AFFINE: volume.affine,
            MetaKeys.ORIGINAL_AFFINE: volume.affine.copy(),
            MetaKeys.SPATIAL_SHAPE: np.asarray(volume.array.shape),
            MetaKeys.SPACE: SpaceKeys.RAS,
            MetaKeys.ORIGINAL_CHANNEL_DIM: "no_channel",
        }
        return volume.array, meta


class LoadVolumed(MapTransform):
    """Replaces the addresses under the keys by MetaTensors: float32 images, and labels in their own integer type."""

    def __init__(
        self, keys: KeysCollection, label_keys: Sequence[str] = ("label",), allow_missing_keys: bool = False
    ) -> None:
        super().__init__(keys, allow_missing_keys)
        self.label_keys = tuple(label_keys)
        self._reader = VolumeReader()

    def __call__(self, data: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
        loaded = dict(data)
        for key in self.key_iterator(loaded):
            address = str(loaded[key])
            array, meta = self._reader.get_data([address])
            meta[ImageMetaKey.FILENAME_OR_OBJ] = address
            if key not in self.label_keys:
                array = array.astype(np.float32, copy=False)
            loaded[key] = MetaTensor.ensure_torch_and_prune_meta(array, meta)
        return loaded


def write_nifti(path: str | Path, array: np.ndarray, affine: np.ndarray, dtype: Any) -> None:
    """Writes array (X, Y, Z) as `.nii` or `.nii.gz`: atomically, same bytes for same input, qform = sform = affine."""
    path = Path(path)
    if not path.name.endswith((".nii", ".nii.gz")):
        raise DataError(f"{path}: cannot be written, expected a name that ends in .nii or .nii.gz. Rename it.")
    image = nib.Nifti1Image(np.asarray(array).astype(dtype), affine, dtype=dtype)
    image.set_qform(affine, code=1)
    image.set_sform(affine, code=1)
    content = image.to_bytes()
    write_bytes_atomically(path, gzip.compress(content, compresslevel=1, mtime=0) if path.suffix == ".gz" else content)


@contextmanager
def _open(address: str | Path) -> Iterator[Opened]:
    """Header and voxel function of the address, its file held open; operating system errors become DataErrors."""
    path, key = split_address(address)
    try:
        if path.is_symlink() and not path.exists():
            found = f"a link to {path.readlink()}, which is not there"
            raise volume_error("dangling-link", address, found, "a file", "Mend the link, or remove it.")
        if not path.exists():
            raise volume_error("missing", address, "not found", "a scan", "Check the path and the dataset folder.")
        if path.is_file() and path.stat().st_size == 0:
            raise volume_error("empty", address, "0 bytes", "a scan", COPY_AGAIN)
        opener = opener_of(path)
        if opener is None:
            raise volume_error("unsupported", address, "unknown kind of file", SUPPORTED, "Convert it to .nii.gz.")
        with opener(path, key) as opened:
            yield opened
    except OSError as error:
        reason = error.strerror or str(error)
        raise volume_error(
            "unreadable", address, reason, "a readable file", "Check the file and its rights."
        ) from error


def _checked_shape(address: str | Path, header: Header) -> tuple[int, ...]:
    """(X, Y, Z) of the declared shape without trailing axes of length 1; checked before anything is decompressed."""
    if header.dtype.kind not in "biuf":
        way_out = "Store one number a voxel."
        raise volume_error("unsupported", address, f"voxels of type {header.dtype}", "integers or floats", way_out)
    shape = tuple(int(length) for length in header.shape)
    while len(shape) > 3 and shape[-1] == 1:
        shape = shape[:-1]
    if len(shape) != 3:
        way_out = (
            "Stack the slices to one volume." if len(shape) < 3 else "Save each volume or channel as its own file."
        )
        raise volume_error(f"{len(shape)}-d", address, f"{len(shape)}-D, shape {shape}", "3-D (X, Y, Z)", way_out)
    if min(shape) < 1:
        raise volume_error("no-voxels", address, f"shape {shape}", "at least one voxel an axis", COPY_AGAIN)
    size = int(np.prod([float(length) for length in shape])) * header.dtype.itemsize
    if size > MAX_BYTES:
        found, limit = f"declares {size / 2**30:.1f} GiB (shape {shape})", f"at most {MAX_BYTES / 2**30:.1f} GiB"
        raise volume_error("too-large", address, found, limit, "Check the header, or crop or resample the scan.")
    return shape


def _returned_dtype(stored: np.dtype) -> np.dtype:
    if stored.kind == "b":
        return np.dtype(np.uint8)
    return stored.newbyteorder("=") if stored.kind in "iu" else np.dtype(np.float32)
