"""Image sets by name: CIFAR-10/100 and STL-10 through torchvision, ImageNet and any other folder of images."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import ignite.distributed as idist
import numpy as np
import torch
from PIL import Image, UnidentifiedImageError
from torch import Tensor

from medssl.core.errors import ConfigError, DataError
from medssl.core.flags import flag

UNREADABLE = (UnidentifiedImageError, OSError, SyntaxError, ValueError, Image.DecompressionBombError)  # what PIL raises
SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff"}
NO_CLASS = -1  # instead of a class
Picture = Path | np.ndarray  # a file, or pixels (H, W, 3) uint8


@dataclass(frozen=True)
class Pictures:
    """Pictures, their classes (or NO_CLASS) and their ids: paths below the set's folder, or part and number.

    converts: pictures without three colours are given them (ImageNet has such), instead of being refused.
    """

    pictures: list[Picture] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    converts: bool = False

    def __len__(self) -> int:
        return len(self.pictures)

    def take(self, places: Sequence[int]) -> "Pictures":
        return replace(
            self,
            pictures=[self.pictures[i] for i in places],
            labels=[self.labels[i] for i in places],
            ids=[self.ids[i] for i in places],
        )

    def read(self, place: int) -> Tensor:
        """(3, H, W) uint8; DataError for a file that is damaged or, unless converted, has no three colours."""
        return read_picture(self.pictures[place], self.converts)

    def without_label(self) -> list[str]:
        """The ids of the pictures that have no class."""
        return [name for name, label in zip(self.ids, self.labels, strict=True) if label == NO_CLASS]

    def hide_labels(self) -> "Pictures":
        return replace(self, labels=[NO_CLASS] * len(self))


def joined(parts: Sequence[Pictures]) -> Pictures:
    """The pictures of all parts, which are of one set."""
    return replace(
        parts[0],
        pictures=[picture for part in parts for picture in part.pictures],
        labels=[label for part in parts for label in part.labels],
        ids=[name for part in parts for name in part.ids],
    )


def read_picture(picture: Picture, converts: bool = False) -> Tensor:
    """(3, H, W) uint8; DataError for a file that is damaged or, unless converted, has no three colours."""
    if not isinstance(picture, Path):
        return torch.from_numpy(np.ascontiguousarray(picture)).permute(2, 0, 1)
    try:
        with Image.open(picture) as image:
            if image.mode != "RGB" and not converts:
                raise DataError(f"{picture}: mode {image.mode}, expected RGB. Convert it to three colours of 8 bits.")
            return torch.from_numpy(np.array(image.convert("RGB"))).permute(2, 0, 1)
    except UNREADABLE as error:
        raise DataError(f"{picture}: not a readable picture ({type(error).__name__}). Replace or remove it.") from error


@dataclass(frozen=True)
class ImageSource:
    """A set as it lies on disk: train, test and further unlabelled pictures, names of the classes, side in pixels."""

    name: str
    root: Path
    train: Pictures
    test: Pictures
    unlabelled: Pictures
    classes: tuple[str, ...]
    size: int

    @property
    def num_classes(self) -> int:
        return len(self.classes)

    def run_facts(self) -> dict[str, Any]:
        """What a run notes of its data."""
        name = self.root.name if self.name == "folder" else self.name
        return {"task": "classification", "dataset": name, "classes": list(self.classes), "image_size": self.size}


def open_images(
    name: str, dataset_dir: str | Path, download: bool | str = False, size: int | None = None
) -> ImageSource:
    """The set `name` below `dataset_dir`: cifar10, cifar100, stl10, imagenet or folder.

    download lets torchvision fetch CIFAR and STL-10 (needs internet). size: side of the squares that pictures of a
    folder are brought to. A folder has `train/<class>/`, `test/<class>/` (or `val/`) and `unlabelled/`; or the class
    folders alone, and then test pictures are drawn later. Raises ConfigError for unknown names, DataError where the
    set is not there.
    """
    if name not in _READERS:
        raise ConfigError(f"dataset_name '{name}' is unknown. Known: {', '.join(sorted(_READERS))}.")
    return _READERS[name](name, Path(dataset_dir).expanduser(), flag(download, "download"), size)


def _cifar(name: str, root: Path, download: bool, size: int | None) -> ImageSource:
    from torchvision import datasets  # noqa: PLC0415  (takes seconds, and folders do without)

    kind = datasets.CIFAR10 if name == "cifar10" else datasets.CIFAR100
    fetched = [_fetched(kind, root, download, train=part) for part in (True, False)]
    train, test = (_numbered(n, part.data, part.targets) for n, part in zip(("train", "test"), fetched, strict=True))
    return ImageSource(name, root, train, test, Pictures(), tuple(fetched[0].classes), size or 32)


def _stl10(name: str, root: Path, download: bool, size: int | None) -> ImageSource:
    from torchvision import datasets  # noqa: PLC0415

    parts = ("train", "test", "unlabeled")
    fetched = [_fetched(datasets.STL10, root, download, split=part) for part in parts]
    train, test, unlabelled = (
        _numbered(name, part.data.transpose(0, 2, 3, 1), part.labels) for name, part in zip(parts, fetched, strict=True)
    )
    return ImageSource(name, root, train, test, unlabelled, tuple(fetched[0].classes), size or 96)


def _numbered(part: str, pixels: np.ndarray, labels: Iterable[int]) -> Pictures:
    """Pictures of a set that is one array, (N, H, W, 3)."""
    return Pictures(list(pixels), [int(label) for label in labels], [f"{part}/{i:05d}" for i in range(len(pixels))])


def _folders(name: str, root: Path, download: bool, size: int | None) -> ImageSource:
    if not root.is_dir():
        raise DataError(f"{root}: no such folder. Give the folder of the {name} data set with --dataset_dir.")
    training = root / "train" if (root / "train").is_dir() else root
    testing = next((root / part for part in ("test", "val") if (root / part).is_dir()), None)
    special = {"train", "test", "val", "unlabelled"}
    classes = tuple(sorted(p.name for p in training.iterdir() if p.is_dir() and p.name not in special))
    if len(classes) < 2:
        raise DataError(f"{training}: {len(classes)} class folders, expected at least 2, one for each class.")
    train = _class_folders(training, classes, root)
    test = Pictures() if testing is None else _class_folders(testing, classes, root)
    loose = pictures_in(root / "unlabelled", NO_CLASS, root)
    if name == "imagenet":
        train, test, loose = (replace(part, converts=True) for part in (train, test, loose))
    return ImageSource(name, root, train, test, loose, classes, size or _default_size(name))


def _default_size(name: str) -> int:
    return 224 if name == "imagenet" else 32


def _class_folders(folder: Path, classes: tuple[str, ...], root: Path) -> Pictures:
    by_class = [pictures_in(folder / name, number, root) for number, name in enumerate(classes)]
    for name, pictures in zip(classes, by_class, strict=True):
        if not len(pictures):
            raise DataError(f"{folder / name}: no picture, expected at least one of class '{name}'.")
    return joined(by_class)


def pictures_in(folder: Path, label: int, root: Path) -> Pictures:
    """All pictures below `folder`, in the order of their paths; none where there is no such folder."""
    paths: list[Picture] = sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES)
    ids = [path.relative_to(root).as_posix() for path in paths if isinstance(path, Path)]
    return Pictures(paths, [label] * len(paths), ids)


def _fetched(kind: Callable[..., Any], root: Path, download: bool, **part: Any) -> Any:
    try:
        with idist.one_rank_first(rank=0, local=True):  # of several processes one downloads
            return kind(str(root), download=download, **part)
    except (RuntimeError, OSError) as error:
        raise DataError(
            f"{root}: the data set is not there or damaged ({error}). Put torchvision's files there, or give "
            "--download true where there is internet."
        ) from error


_READERS: dict[str, Callable[[str, Path, bool, int | None], ImageSource]] = {
    "cifar10": _cifar,
    "cifar100": _cifar,
    "stl10": _stl10,
    "imagenet": _folders,
    "folder": _folders,
}
