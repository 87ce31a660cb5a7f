"""Every picture is opened before a training starts, and remembered: a damaged one must not end it after days."""

import hashlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import ignite.distributed as idist

from medssl.core.errors import DataError
from medssl.core.progress import tracked
from medssl.data.check_cache import load_cache, save_cache
from medssl.data.findings import Finding, require_valid
from medssl.data.split import ROLES
from natural_image_ext.data.scene_splits import SceneSplit
from natural_image_ext.data.scenes import read_mask
from natural_image_ext.data.sources import joined, read_picture
from natural_image_ext.data.splits import ImageSplit

RULES = 1  # raise it whenever a check changes, so that older answers are not believed


def check_pictures(split: ImageSplit, runs_dir: str | Path) -> None:
    """Raise DataError naming files that are damaged or have no three colours; an unchanged set is not read again."""
    pictures = joined([split.unlabelled, split.labelled, split.validation, split.test])
    files = sorted({picture for picture in pictures.pictures if isinstance(picture, Path)})
    _require_readable(
        files,
        partial(read_picture, converts=pictures.converts),
        "pictures",
        runs_dir,
        rules=f"converts {pictures.converts}",
    )


def check_scenes(split: SceneSplit, num_classes: int, void: int, runs_dir: str | Path) -> None:
    """Raise DataError naming images and masks that are damaged, do not fit each other or hold unknown classes."""
    masks: dict[Path, Path | None] = {}
    for role in ROLES:
        scenes = split.role(role)
        masks |= dict(zip(scenes.images, scenes.masks, strict=True))

    def read(image: Path) -> None:
        picture, mask = read_picture(image), masks[image]
        if mask is None:
            return
        shape = read_mask(mask, num_classes, void).shape
        if shape != picture.shape[1:]:
            raise DataError(
                f"{mask}: {shape[1]}x{shape[0]} pixels, its image has {picture.shape[2]}x{picture.shape[1]}."
            )

    also = [mask for mask in masks.values() if mask is not None]
    _require_readable(sorted(masks), read, "images with masks", runs_dir, also, f"{num_classes} classes, void {void}")


def _require_readable(
    files: Sequence[Path],
    read: Callable[[Path], Any],
    what: str,
    runs_dir: str | Path,
    also: Sequence[Path] = (),
    rules: str = "",
) -> None:
    """Raise DataError if `read` refuses any of the files; nothing is read again while they and `also` are the same."""
    if idist.get_rank() != 0 or not files:
        return
    print(f"checking {len(files)} {what}", flush=True)
    cache_file = Path(runs_dir) / "picture_checks.json"
    cache, stamp = load_cache(cache_file), _stamp([*files, *sorted(also)], rules)
    if stamp not in cache:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            checked = pool.map(lambda file: _findings(file, read), files)
            shown = tracked(checked, f"checking {what}", "files", len(files))
            cache[stamp] = [finding for findings in shown for finding in findings]
        save_cache(cache_file, cache)
    require_valid(cache[stamp], "Mend these first.")


def _findings(file: Path, read: Callable[[Path], Any]) -> list[Finding]:
    try:
        read(file)
    except DataError as error:
        named, _, message = str(error).partition(": ")
        return [Finding(file.stem, named, "error", "picture", message)]
    return []


def _stamp(files: Sequence[Path], rules: str) -> str:
    """Changes with the path, size or time of any file, and with the rules they are checked by."""
    digest = hashlib.sha256(f"{RULES} {rules}\n".encode())
    for file in files:
        state = file.stat()
        digest.update(f"{file.resolve()}\0{state.st_size}\0{state.st_mtime_ns}\n".encode())
    return digest.hexdigest()
