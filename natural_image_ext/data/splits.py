"""Labelled, unlabelled, validation and test pictures: balanced over the classes, drawn once, written with a hash."""

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medssl.core.errors import ConfigError, DataError
from natural_image_ext.data.roles import RoleSplit, found_again, read_content
from natural_image_ext.data.sources import ImageSource, Pictures, joined, open_images

CHOSEN = ("labelled", "validation", "test")  # all other training pictures are unlabelled


@dataclass(frozen=True)
class ImageSplit(RoleSplit[Pictures]):
    """Pictures of every role; its file names those that were chosen."""

    def content(self) -> dict[str, Any]:
        return {name: self.role(name).ids for name in CHOSEN}


def split_images(
    source: ImageSource,
    labelled: int,
    validation: int | float = 0,
    test: int | float = 0.2,
    seed: int = 0,
    split_seed: int = 0,
) -> ImageSplit:
    """`labelled` pictures, equally many of each class; the rest of the training pictures is unlabelled.

    validation is taken from the labelled pictures (a number below 1 is a fraction of them), never from the test ones.
    Labelled pictures are among the unlabelled too, as in the literature, but validation pictures are not. Where the
    source has no test pictures, `test` of each class are drawn with split_seed. Raises ConfigError if a class has too
    few pictures, or the number cannot be divided among the classes.
    """
    classes = len(source.classes)
    if labelled < classes or labelled % classes:
        near = _near(labelled, classes)
        raise ConfigError(f"labelled {labelled}: expected a multiple of the {classes} classes. Give {near}.")
    if min(validation, test) < 0:
        raise ConfigError(f"validation {validation}, test {test}: a number of pictures cannot be negative.")
    if not len(source.test) and (test == 0 or (test >= 1 and test % classes)):
        near = _near(int(test), classes)
        raise ConfigError(
            f"test {test}: expected a share, or a multiple of the {classes} classes. Give 0.2, or {near}."
        )
    by_class = _places_by_class(source.train.labels, classes)
    test_places = [] if len(source.test) else _take_test(by_class, test, split_seed)
    chosen: list[int] = []
    for name, places in zip(source.classes, by_class.values(), strict=True):
        if len(places) < labelled // classes:
            raise ConfigError(
                f"labelled {labelled}: {labelled // classes} of each class, but class '{name}' has {len(places)} "
                "pictures left. Ask for fewer."
            )
        chosen += random.Random(f"{seed}/{name}").sample(sorted(places), labelled // classes)  # noqa: S311
    wanted = round(validation * labelled) if validation < 1 else int(validation)
    if validation >= 1 and wanted > labelled - classes:
        raise ConfigError(
            f"validation {validation}: at most {labelled - classes} of {labelled}, one label a class stays."
        )
    held = _balanced_part(chosen, source.train.labels, wanted)
    kept = [place for place in chosen if place not in held]
    origin = {"dataset": source.name, "dataset_dir": str(source.root), "size": source.size}
    return _assembled(source, origin, kept, sorted(held), sorted(test_places))


def _near(number: int, classes: int) -> str:
    """Which numbers near this one can be divided among the classes: `39 or 42`."""
    below = number // classes * classes
    return f"{below} or {below + classes}" if below else str(classes)


def read_image_split(path: str | Path) -> ImageSplit:
    """The split stored at `path`, its set opened again; DataError if the set's pictures are not those of then."""
    content = read_content(path, *CHOSEN)
    origin = content["origin"]
    folder = found_again(path, content, origin["dataset_dir"])
    source = open_images(origin["dataset"], folder, size=origin["size"])
    places = {picture: place for place, picture in enumerate(source.train.ids)}
    drawn = {**content, "test": []} if len(source.test) else content  # from the training pictures
    try:
        split = _assembled(source, origin, *([places[i] for i in drawn[name]] for name in CHOSEN))
    except KeyError as error:
        raise DataError(f"{path}: picture {error} is not in {source.root} any more. Restore it.") from None
    if split.hash != content["hash"]:
        raise DataError(
            f"{path}: the pictures in {source.root} are not those of split {content['hash']}. Restore them."
        )
    return split


def _assembled(
    source: ImageSource, origin: dict[str, Any], kept: Sequence[int], held: Sequence[int], test: Sequence[int]
) -> ImageSplit:
    """The split of `source` with these places of its training pictures as labelled, validation and test ones."""
    away = {*held, *test}
    rest = [place for place in range(len(source.train)) if place not in away]
    unlabelled = joined([source.train.take(rest), source.unlabelled]).hide_labels()
    testing = source.test if len(source.test) else source.train.take(sorted(test))
    return ImageSplit(
        source.train.take(sorted(kept)), unlabelled, source.train.take(sorted(held)), testing, origin=origin
    )


def _places_by_class(labels: list[int], classes: int) -> dict[int, list[int]]:
    places: dict[int, list[int]] = defaultdict(list)
    for place, label in enumerate(labels):
        places[label].append(place)
    return {label: places[label] for label in range(classes)}


def _take_test(by_class: dict[int, list[int]], test: int | float, split_seed: int) -> list[int]:
    """Places of test pictures, taken out of `by_class`, equally many or the same share of each class."""
    taken: list[int] = []
    for places in by_class.values():
        random.Random(split_seed).shuffle(places)  # noqa: S311  (a split, no secret)
        number = round(test * len(places)) if test < 1 else int(test) // len(by_class)
        taken += places[:number]
        del places[:number]
    return taken


def _balanced_part(chosen: list[int], labels: list[int], wanted: int) -> set[int]:
    """Places for validation, taken round by round from the classes; the last one of a class stays."""
    rows: dict[int, list[int]] = defaultdict(list)
    for place in chosen:
        rows[labels[place]].append(place)
    held: set[int] = set()
    for depth in range(max(len(row) for row in rows.values()) - 1):
        for row in rows.values():
            if len(held) < wanted:
                held.add(row[depth])
    return held
