"""The split lists of UniMatch, U2PL and PS-MT as they are published: which scenes are labelled, which are not."""

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from medssl.core.errors import DataError
from natural_image_ext.data.scenes import Scenes, id_below, mask_at

CITYSCAPES_IMAGE = "_leftImg8bit.png"


def list_files(lists_dir: str | Path) -> tuple[Path, Path]:
    """The lists of labelled and of unlabelled scenes that `lists_dir` stands for; DataError where neither pair is.

    UniMatch and U2PL: labeled.txt and unlabeled.txt in that folder. PS-MT, whose folder has those of all numbers: the
    path up to the number, `voc_splits/183` for 183_train_supervised.txt and 183_train_unsupervised.txt.
    """
    folder = Path(lists_dir)
    pairs = (
        (folder / "labeled.txt", folder / "unlabeled.txt"),
        tuple(folder.with_name(f"{folder.name}_train_{kind}supervised.txt") for kind in ("", "un")),
    )
    for labelled, unlabelled in pairs:
        if labelled.is_file() and unlabelled.is_file():
            return labelled, unlabelled
    missing = next(file for file in pairs[0] if not file.is_file())
    raise DataError(
        f"{missing}: no such file. lists_dir is a folder with labeled.txt and unlabeled.txt, or a path such as "
        "voc_splits/183 beside which 183_train_supervised.txt and 183_train_unsupervised.txt lie."
    )


def listed_scenes(root: Path, file: Path) -> Scenes:
    """The scenes that a list names, one a line, in its order; masks are None where they are not there.

    A line is `image mask`, both paths below `root` (with or without a / before them), an image alone, an id of VOC, or
    an image of Cityscapes in whatever folder, alone or with its mask. Raises DataError for a line that is none of it.
    """
    images, ids = [], []
    masks: list[Path | None] = []
    for number, line in enumerate(file.read_text().splitlines(), start=1):
        words = [word.lstrip("/") for word in line.split()]
        if not words:
            continue
        place = f"{file}, line {number}"
        if any(".." in PurePosixPath(word).parts for word in words):
            raise DataError(f"{place}: '{line.strip()}' leaves the data set. Name files below {root} without '..'.")
        names = _image_names(words[0])
        image = next((root / name for name in names if (root / name).is_file()), None)
        if image is None:
            raise DataError(
                f"{place}: no image {' or '.join(names)} below {root}. Expected `image mask` with paths below it, an "
                "id of VOC or an image of Cityscapes: is the list one of this data set, and --dataset_dir right?"
            )
        images.append(image)
        masks.append(mask_at(root, *_mask_names(words)))
        ids.append(id_below(root, image))
    return Scenes(images, masks, ids)


def _image_names(word: str) -> list[str]:
    """Where an image may lie below the data set's folder, the likeliest first."""
    if _is_voc_id(word):
        return [f"JPEGImages/{word}.jpg"]
    if word.endswith(CITYSCAPES_IMAGE):
        return list(dict.fromkeys([word, f"leftImg8bit/{_cityscapes_stem(word)}{CITYSCAPES_IMAGE}"]))
    return [word]


def _mask_names(words: Sequence[str]) -> list[str]:
    """Where the mask of a line may lie: as listed, else where the data set has it."""
    listed = list(words[1:2])
    if _is_voc_id(words[0]):
        return [*listed, f"SegmentationClass/{words[0]}.png"]
    if words[0].endswith(CITYSCAPES_IMAGE):
        return [*listed, f"gtFine/{_cityscapes_stem(words[0])}_gtFine_labelTrainIds.png"]
    return listed


def _is_voc_id(word: str) -> bool:
    return "/" not in word and not PurePosixPath(word).suffix


def _cityscapes_stem(word: str) -> str:
    """`train/jena/jena_000078_000019` of jena_000078_000019_leftImg8bit.png in any folder; `val/...` below a val/."""
    path = PurePosixPath(word)
    name = path.name.removesuffix(CITYSCAPES_IMAGE)
    return f"{'val' if 'val' in path.parts else 'train'}/{name.split('_')[0]}/{name}"
