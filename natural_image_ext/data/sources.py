"""Image sets by name: CIFAR-10/100 and STL-10 through torchvision, ImageNet and any other folder of images."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from medssl.errors import ConfigError, DataError
from medssl.flags import flag

SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff"}
Picture = Path | np.ndarray  # a file, or pixels (H, W, 3) uint8


@dataclass(frozen=True)
class Pictures:
    """Pictures and their classes; a class of -1 stands for none."""

    pictures: list[Picture] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.pictures)

    def take(self, places: list[int]) -> "Pictures":
        return Pictures([self.pictures[i] for i in places], [self.labels[i] for i in places])


@dataclass(frozen=True)
class ImageSource:
    """A set as it lies on disk: train, test and further unlabelled pictures, names of the classes, side in pixels."""

    name: str
    train: Pictures
    test: Pictures
    unlabelled: Pictures
    classes: tuple[str, ...]
    size: int


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
    from torchvision import datasets  # noqa: PLC0415  (an optional extra)

    kind = datasets.CIFAR10 if name == "cifar10" else datasets.CIFAR100
    found = [_fetched(kind, root, download, train=part) for part in (True, False)]
    train, test = (Pictures(list(part.data), [int(label) for label in part.targets]) for part in found)
    return ImageSource(name, train, test, Pictures(), tuple(found[0].classes), size or 32)


def _stl10(name: str, root: Path, download: bool, size: int | None) -> ImageSource:
    from torchvision import datasets  # noqa: PLC0415

    found = [_fetched(datasets.STL10, root, download, split=split) for split in ("train", "test", "unlabeled")]
    train, test, unlabelled = (
        Pictures(list(part.data.transpose(0, 2, 3, 1)), [int(label) for label in part.labels]) for part in found
    )
    return ImageSource(name, train, test, unlabelled, tuple(found[0].classes), size or 96)


def _folders(name: str, root: Path, download: bool, size: int | None) -> ImageSource:
    if not root.is_dir():
        raise DataError(f"{root}: no such folder. Give the folder of the {name} data set with --dataset_dir.")
    training = root / "train" if (root / "train").is_dir() else root
    testing = next((root / part for part in ("test", "val") if (root / part).is_dir()), None)
    special = {"train", "test", "val", "unlabelled"}
    classes = tuple(sorted(p.name for p in training.iterdir() if p.is_dir() and p.name not in special))
    if len(classes) < 2:
        raise DataError(f"{training}: {len(classes)} class folders, expected at least 2, one for each class.")
    train = _class_folders(training, classes)
    test = Pictures() if testing is None else _class_folders(testing, classes)
    loose = _pictures_in(root / "unlabelled") if (root / "unlabelled").is_dir() else []
    return ImageSource(name, train, test, Pictures(loose, [-1] * len(loose)), classes, size or _default_size(name))


def _default_size(name: str) -> int:
    return 224 if name == "imagenet" else 32


def _class_folders(root: Path, classes: tuple[str, ...]) -> Pictures:
    pictures: list[Picture] = []
    labels = []
    for number, name in enumerate(classes):
        found = _pictures_in(root / name) if (root / name).is_dir() else []
        if not found:
            raise DataError(f"{root / name}: no picture, expected at least one of class '{name}'.")
        pictures += found
        labels += [number] * len(found)
    return Pictures(pictures, labels)


def _pictures_in(folder: Path) -> list[Picture]:
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES)


def _fetched(kind: Callable[..., Any], root: Path, download: bool, **part: Any) -> Any:
    try:
        return kind(str(root), download=download, **part)
    except RuntimeError as error:
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
