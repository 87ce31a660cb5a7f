"""Images with masks by name: PASCAL VOC 2012, Cityscapes, CamVid, and any folder of images and masks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from medssl.core.errors import ConfigError, DataError
from natural_image_ext.data.sources import SUFFIXES, UNREADABLE

VOC = (
    "background aeroplane bicycle bird boat bottle bus car cat chair cow diningtable dog horse motorbike person "
    "pottedplant sheep sofa train tvmonitor"
)
CITYSCAPES = (
    "road sidewalk building wall fence pole traffic_light traffic_sign vegetation terrain sky person rider car truck "
    "bus train motorcycle bicycle"
)
CAMVID = "sky building pole road pavement tree sign fence car pedestrian bicyclist"
VOID = 255


@dataclass(frozen=True)
class Scenes:
    """Images, their masks (None where there is none) and ids: paths below the set's folder, without suffix."""

    images: list[Path] = field(default_factory=list)
    masks: list[Path | None] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.images)

    def take(self, places: Sequence[int]) -> "Scenes":
        parts: Any = ([part[i] for i in places] for part in (self.images, self.masks, self.ids))
        return Scenes(*parts)

    def without_label(self) -> list[str]:
        """The ids of the images that have no mask."""
        return [name for name, mask in zip(self.ids, self.masks, strict=True) if mask is None]


@dataclass(frozen=True)
class SceneSource:
    """A set as it lies on disk. void: the value of masks that stands for no class (255 always does)."""

    name: str
    root: Path
    train: Scenes
    test: Scenes
    classes: tuple[str, ...]
    void: int = VOID

    @property
    def num_classes(self) -> int:
        return len(self.classes)

    def run_facts(self) -> dict[str, Any]:
        """What a run notes of its data."""
        name = self.root.name if self.name == "folder" else self.name
        return {"task": "scenes", "dataset": name, "classes": list(self.classes), "void": self.void}


def open_scenes(name: str, dataset_dir: str | Path, classes: Sequence[str] | None = None) -> SceneSource:
    """The set `name` below `dataset_dir`: voc, voc_blender, cityscapes, camvid or folder.

    voc: VOCdevkit's VOC2012, the classic setting: the images of train.txt (1,464) have masks; those that SBD adds,
    where they are there (SegmentationClassAug/ or ImageSets/Segmentation/trainaug.txt), have none. voc_blender: the
    same images (10,582 in all), each with its mask, coarse ones of SBD included.
    cityscapes: leftImg8bit/ and gtFine/ with *_labelTrainIds.png. camvid: train/, trainannot/, test/, testannot/.
    folder: images/ and masks/ with the same names, or train/ and test/ with these two each; masks hold class numbers,
    255 where there is none; `classes` names them. Raises ConfigError for unknown names, DataError for what is missing.
    """
    if name not in _READERS:
        raise ConfigError(f"dataset_name '{name}' is unknown. Known: {', '.join(sorted(_READERS))}.")
    root = Path(dataset_dir).expanduser()
    if not root.is_dir():
        raise DataError(f"{root}: no such folder. Give the folder of the {name} data set with --dataset_dir.")
    return _READERS[name](root, None if classes is None else tuple(classes))


def mask_at(root: Path, *names: str) -> Path | None:
    """The first mask of these names that is there; one of VOC may lie among VOC's own or SBD's coarse ones, too."""
    places = [place for name in names for place in (name, _other_folder_of_voc(name))]
    return next((root / place for place in places if (root / place).is_file()), None)


def _other_folder_of_voc(name: str) -> str:
    """The name with SegmentationClass/ for SegmentationClassAug/ or the other way round; unchanged without either."""
    fine, coarse = "SegmentationClass/", "SegmentationClassAug/"
    return name.replace(coarse, fine) if coarse in name else name.replace(fine, coarse)


def id_below(root: Path, path: Path) -> str:
    """What a scene is called: its path below `root`, without suffix."""
    return path.relative_to(root).with_suffix("").as_posix()


def read_mask(path: Path, num_classes: int, void: int = VOID) -> np.ndarray:
    """Class numbers (H, W), uint8, 255 where there is none; DataError for a damaged file or unknown numbers."""
    try:
        with Image.open(path) as image:
            mask = np.array(image)
    except UNREADABLE as error:
        raise DataError(f"{path}: not a readable mask ({type(error).__name__}). Replace or remove it.") from error
    if mask.ndim != 2 or mask.dtype != np.uint8:
        raise DataError(f"{path}: shape {mask.shape}, {mask.dtype}, expected one class number of 8 bits a pixel.")
    mask = np.where(mask == void, VOID, mask).astype(np.uint8)
    unknown = sorted(set(np.unique(mask).tolist()) - {*range(num_classes), VOID})
    if unknown:
        raise DataError(f"{path}: class numbers {unknown[:5]}, expected 0 to {num_classes - 1} and 255 for none.")
    return mask


def _voc(root: Path, classes: tuple[str, ...] | None) -> SceneSource:
    """Classic: what SBD adds is unlabelled, whether its coarse masks are there or not."""
    train, test = (_voc_part(root, name) for name in ("train", "val"))
    extra = _added_by_sbd(root, train, test)
    bare = replace(extra, masks=[None] * len(extra))
    return SceneSource("voc", root, _joined(train, bare), test, classes or tuple(VOC.split()))


def _voc_blender(root: Path, classes: tuple[str, ...] | None) -> SceneSource:
    train, test = (_voc_part(root, name) for name in ("train", "val"))
    extra = _added_by_sbd(root, train, test)
    if not any(extra.masks):
        raise DataError(
            f"{root / 'SegmentationClassAug'}: no mask beside those of train.txt and val.txt. Put SBD's masks there, "
            "or take the classic setting, --dataset_name voc."
        )
    return SceneSource("voc_blender", root, _joined(train, extra), test, classes or tuple(VOC.split()))


def _voc_part(root: Path, name: str) -> Scenes:
    file = root / "ImageSets" / "Segmentation" / f"{name}.txt"
    if not file.is_file():
        raise DataError(f"{file}: no such file. Give VOCdevkit/VOC2012 with --dataset_dir.")
    return _paired(root, [(f"JPEGImages/{i}.jpg", f"SegmentationClass/{i}.png") for i in file.read_text().split()])


def _added_by_sbd(root: Path, train: Scenes, test: Scenes) -> Scenes:
    """All that trainaug.txt names or that has a mask, but is in neither train.txt nor val.txt; masks are coarse."""
    masks = [path for name in ("SegmentationClass", "SegmentationClassAug") for path in (root / name).glob("*.png")]
    listed = root / "ImageSets" / "Segmentation" / "trainaug.txt"
    lines = listed.read_text().splitlines() if listed.is_file() else []
    named = {path.stem for path in masks} | {Path(line.split()[0]).stem for line in lines if line.strip()}
    extra = sorted(named - {Path(name).name for name in (*train.ids, *test.ids)})
    scenes = _paired(root, [(f"JPEGImages/{name}.jpg", f"SegmentationClass/{name}.png") for name in extra])
    return replace(scenes, masks=[mask_at(root, f"SegmentationClass/{name}.png") for name in extra])


def _joined(first: Scenes, second: Scenes) -> Scenes:
    return Scenes(first.images + second.images, first.masks + second.masks, first.ids + second.ids)


def _cityscapes(root: Path, classes: tuple[str, ...] | None) -> SceneSource:
    train, test = (_cityscapes_part(root, name) for name in ("train", "val"))
    return SceneSource("cityscapes", root, train, test, classes or tuple(CITYSCAPES.split()))


def _cityscapes_part(root: Path, name: str) -> Scenes:
    images = sorted((root / "leftImg8bit" / name).glob("*/*_leftImg8bit.png"))
    if not images:
        raise DataError(f"{root / 'leftImg8bit' / name}: no image, expected <city>/*_leftImg8bit.png.")
    stems = [f"{name}/{path.parent.name}/{path.name.removesuffix('_leftImg8bit.png')}" for path in images]
    return _paired(root, [(f"leftImg8bit/{s}_leftImg8bit.png", f"gtFine/{s}_gtFine_labelTrainIds.png") for s in stems])


def _camvid(root: Path, classes: tuple[str, ...] | None) -> SceneSource:
    train = _beside(root, root / "train", root / "trainannot")
    test = _beside(root, root / "test", root / "testannot") if (root / "test").is_dir() else Scenes()
    named = classes or tuple(CAMVID.split())
    return SceneSource("camvid", root, train, test, named, void=len(named))


def _folder(root: Path, classes: tuple[str, ...] | None) -> SceneSource:
    has_parts = (root / "train").is_dir()
    train = root / "train" if has_parts else root
    scenes = _beside(root, train / "images", train / "masks")
    test = _beside(root, root / "test" / "images", root / "test" / "masks") if (root / "test").is_dir() else Scenes()
    return SceneSource("folder", root, scenes, test, classes or _numbered_classes(scenes))


def _numbered_classes(scenes: Scenes) -> tuple[str, ...]:
    """Names for the class numbers that the masks hold."""
    highest = 0
    for mask in scenes.masks:
        if mask is not None:
            values = read_mask(mask, VOID)
            highest = max(highest, int(values[values != VOID].max(initial=0)))
    if highest == 0:
        raise DataError(f"{scenes.masks[0]}: all masks hold class 0 alone, expected at least two classes.")
    return tuple(f"class {number}" for number in range(highest + 1))


def _beside(root: Path, images: Path, masks: Path) -> Scenes:
    """Images of a folder and masks of the same stem in another one; an image without a mask is unlabelled."""
    if not images.is_dir():
        raise DataError(f"{images}: no such folder, expected images there and masks in {masks}.")
    paths = sorted(path for path in images.iterdir() if path.suffix.lower() in SUFFIXES)
    if not paths:
        raise DataError(f"{images}: no image, expected {', '.join(sorted(SUFFIXES))}.")
    known = {path.stem: path for path in masks.iterdir()} if masks.is_dir() else {}
    return Scenes(paths, [known.get(path.stem) for path in paths], [id_below(root, path) for path in paths])


def _paired(root: Path, pairs: Sequence[tuple[str, str]]) -> Scenes:
    images = [root / image for image, _ in pairs]
    masks = [root / mask for _, mask in pairs]
    missing = [path for path in images if not path.is_file()]
    if missing:
        raise DataError(f"{missing[0]}: no such image, {len(missing)} of {len(images)} are missing.")
    return Scenes(
        images, [mask if mask.is_file() else None for mask in masks], [id_below(root, path) for path in images]
    )


_READERS: dict[str, Callable[[Path, tuple[str, ...] | None], SceneSource]] = {
    "voc": _voc,
    "voc_blender": _voc_blender,
    "cityscapes": _cityscapes,
    "camvid": _camvid,
    "folder": _folder,
}
