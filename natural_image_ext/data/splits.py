"""Labelled, unlabelled, validation and test pictures: balanced over the classes and drawn once from a seed."""

import hashlib
import json
import random
from collections import defaultdict
from dataclasses import dataclass

from medssl.errors import ConfigError
from natural_image_ext.data.sources import ImageSource, Pictures


@dataclass(frozen=True)
class ImageSplit:
    """Pictures of every role; `hash` names this very choice."""

    labelled: Pictures
    unlabelled: Pictures
    validation: Pictures
    test: Pictures
    hash: str

    @property
    def counts(self) -> dict[str, int]:
        return {name: len(getattr(self, name)) for name in ("labelled", "unlabelled", "validation", "test")}


def split_images(
    source: ImageSource,
    labelled: int,
    validation: int | float = 0.1,
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
        raise ConfigError(f"labelled {labelled}: expected a multiple of the {classes} classes.")
    by_class = _places_by_class(source.train.labels, classes)
    test_places: list[int] = []
    if not len(source.test):
        for places in by_class.values():
            random.Random(split_seed).shuffle(places)  # noqa: S311  (a split, no secret)
            number = round(test * len(places)) if test < 1 else int(test) // classes
            test_places += places[:number]
            del places[:number]
    chosen: list[int] = []
    for name, places in zip(source.classes, by_class.values(), strict=True):
        if len(places) < labelled // classes:
            raise ConfigError(
                f"labelled {labelled}: {labelled // classes} of each class, but class '{name}' has {len(places)} "
                "pictures left. Ask for fewer."
            )
        chosen += random.Random(f"{seed}/{name}").sample(sorted(places), labelled // classes)  # noqa: S311
    held = _balanced_part(chosen, source.train.labels, validation, labelled)
    kept = [place for place in chosen if place not in held]
    if not kept:
        raise ConfigError(f"validation {validation}: no labelled picture is left to learn from. Ask for fewer.")
    rest = [place for places in by_class.values() for place in places if place not in held]
    unlabelled = source.train.take(sorted(rest))
    unlabelled = Pictures(unlabelled.pictures + source.unlabelled.pictures, [-1] * (len(rest) + len(source.unlabelled)))
    testing = source.test if len(source.test) else source.train.take(sorted(test_places))
    roles = [sorted(kept), sorted(rest), sorted(held), sorted(test_places)]
    digest = hashlib.sha256(json.dumps([source.name, len(source.train), roles]).encode()).hexdigest()[:16]
    return ImageSplit(source.train.take(sorted(kept)), unlabelled, source.train.take(sorted(held)), testing, digest)


def _places_by_class(labels: list[int], classes: int) -> dict[int, list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    for place, label in enumerate(labels):
        found[label].append(place)
    return {label: found[label] for label in range(classes)}


def _balanced_part(chosen: list[int], labels: list[int], validation: int | float, labelled: int) -> set[int]:
    """Places for validation, taken round by round from the classes; with one label of a class none is."""
    wanted = round(validation * labelled) if validation < 1 else int(validation)
    rows: dict[int, list[int]] = defaultdict(list)
    for place in chosen:
        rows[labels[place]].append(place)
    held: set[int] = set()
    for depth in range(max(len(row) for row in rows.values()) - 1):
        for row in rows.values():
            if len(held) < wanted:
                held.add(row[depth])
    return held
