"""Every picture is opened before a training starts, and remembered: a damaged one must not end it after days."""

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import ignite.distributed as idist

from medssl.data.check_cache import load_cache, save_cache
from medssl.data.findings import Finding, require_valid
from medssl.errors import DataError
from natural_image_ext.data.sources import joined
from natural_image_ext.data.splits import ImageSplit
from natural_image_ext.data.views import read_picture


def check_pictures(split: ImageSplit, runs_dir: str | Path) -> None:
    """Raise DataError naming files that are damaged or have no three colours; an unchanged set is not read again."""
    pictures = joined([split.unlabelled, split.labelled, split.validation, split.test])
    files = sorted({picture for picture in pictures.pictures if isinstance(picture, Path)})
    if idist.get_rank() != 0 or not files:
        return
    print(f"checking {len(files)} pictures", flush=True)
    cache_file = Path(runs_dir) / "picture_checks.json"
    cache, stamp = load_cache(cache_file), _stamp(files)
    if stamp not in cache:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            cache[stamp] = [finding for found in pool.map(_findings, files) for finding in found]
        save_cache(cache_file, cache)
    require_valid(cache[stamp])


def _findings(file: Path) -> list[Finding]:
    try:
        read_picture(file)
    except DataError as error:
        return [Finding(file.stem, str(file), "error", "picture", str(error).removeprefix(f"{file}: "))]
    return []


def _stamp(files: Sequence[Path]) -> str:
    """Changes with the path, size or time of any file."""
    digest = hashlib.sha256()
    for file in files:
        state = file.stat()
        digest.update(f"{file.resolve()}\0{state.st_size}\0{state.st_mtime_ns}\n".encode())
    return digest.hexdigest()
