"""Labelled, unlabelled, validation and test scenes: drawn by seed, or read from the literature's lists."""

import math
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medssl.core.errors import ConfigError, DataError
from medssl.core.stored_paths import WRITTEN, located
from medssl.data.split import ROLES
from natural_image_ext.data.roles import RoleSplit, read_content
from natural_image_ext.data.scene_lists import list_files, listed_scenes
from natural_image_ext.data.scenes import Scenes, SceneSource

PUBLISHED = ("voc", "voc_blender", "cityscapes")  # data sets whose shares the literature has as numbers of images


@dataclass(frozen=True)
class SceneSplit(RoleSplit[Scenes]):
    """Scenes of every role; its file names the files of all of them."""

    def content(self) -> dict[str, Any]:
        cases = [
            {"id": i, "role": role, "image": str(image), **({} if mask is None else {"label": str(mask)})}
            for role in ROLES
            for image, mask, i in zip(*vars(self.role(role)).values(), strict=True)
        ]
        return {"cases": cases}


def split_scenes(
    source: SceneSource,
    labelled: int | float,
    validation: int | float = 0,
    test: int | float = 0.25,
    seed: int = 0,
    lists_dir: str | Path | None = None,
) -> SceneSplit:
    """The split of `source`. Numbers below 1 are shares of what there is to choose from.

    labelled scenes are drawn with seed among those with a mask; validation scenes are taken from them. Where the source
    has no test part, `test` is the last share of every film (names up to the first _; of the whole folder where most
    names are films of one image), not drawn, as neighbouring frames are alike; only at the cut two neighbours are on
    both sides. lists_dir: lists of the literature (`list_files`) instead of a draw. Raises ConfigError for numbers that
    cannot be.
    """
    if min(labelled, validation, test) < 0 or labelled == 0:
        raise ConfigError(f"labelled {labelled}, validation {validation}, test {test}: expected numbers above 0.")
    training, testing = source.train, source.test
    if not len(testing):
        training, testing = _last_of_each_sequence(training, test)
    if lists_dir is None:
        known = [place for place, mask in enumerate(training.masks) if mask is not None]
        if not known:
            raise DataError(f"{source.root}: no training image has a mask. Add masks of at least one of them.")
        number = _labelled_count(labelled, len(known), source.name)
        if not 0 < number <= len(known):
            raise ConfigError(
                f"labelled {labelled}: {len(known)} training images have a mask, this asks for {number} of them. "
                f"Ask for 1 to {len(known)}."
            )
        chosen = random.Random(f"{seed}/labelled").sample(known, number)  # noqa: S311  (a split, no secret)
        with_label, rest = training.take(chosen), training.take(_others(len(training), chosen))
    else:
        of_labelled, of_unlabelled = list_files(lists_dir)
        with_label, rest = (listed_scenes(source.root, file) for file in (of_labelled, of_unlabelled))
        bare = with_label.without_label()
        if bare:
            raise DataError(f"{of_labelled}: {len(bare)} images have no mask, first '{bare[0]}'.")
    held = _count(validation, len(with_label))
    if held >= len(with_label):
        raise ConfigError(f"validation {validation}: no labelled image is left to learn from. Ask for fewer.")
    origin = {"dataset": source.name, "seed": seed, "lists": lists_dir is not None}
    parts = (with_label.take(range(held, len(with_label))), rest, with_label.take(range(held)), testing)
    _refuse_shared(parts)
    return SceneSplit(*parts, origin=origin)


def read_scene_split(path: str | Path) -> SceneSplit:
    """The split stored at `path`; DataError if its hash does not fit its content."""
    content = read_content(path, "cases")
    parts = {role: _of_role(path, content, role) for role in ROLES}
    split = SceneSplit(**parts, origin=content["origin"])
    if split.hash != content["hash"]:
        raise DataError(f"{path}: the hash {content['hash']} does not fit the cases ({split.hash}). Was it edited?")
    return split


def _of_role(path: str | Path, content: Mapping[str, Any], role: str) -> Scenes:
    """The scenes of a role, their files where they are now."""
    folder, written = Path(path).parent, content.get(WRITTEN)
    own = [case for case in content["cases"] if case["role"] == role]
    images = [Path(located(case["image"], folder, written)) for case in own]
    masks = [Path(located(case["label"], folder, written)) if "label" in case else None for case in own]
    return Scenes(images, masks, [case["id"] for case in own])


def _last_of_each_sequence(scenes: Scenes, test: int | float) -> tuple[Scenes, Scenes]:
    """Training scenes, and the last share of every sequence that has masks for testing."""
    sequences: dict[str, list[int]] = defaultdict(list)
    for place, name in enumerate(scenes.ids):
        sequences[f"{Path(name).parent}/{Path(name).name.split('_')[0]}"].append(place)
    if len(sequences) > len(scenes) / 2:  # no films, then: the whole folder is one, in the order of its names
        sequences = {"": list(range(len(scenes)))}
    share = test if test < 1 else test / len(scenes)
    taken = [place for places in sequences.values() for place in places[len(places) - round(share * len(places)) :]]
    taken = [place for place in taken if scenes.masks[place] is not None]
    if not taken:
        raise ConfigError(f"test {test}: no image with a mask is left for testing. Ask for more.")
    return scenes.take(_others(len(scenes), taken)), scenes.take(sorted(taken))


def _refuse_shared(parts: Sequence[Scenes]) -> None:
    seen: dict[str, int] = {}
    for number, part in enumerate(parts):
        for name in part.ids:
            if seen.setdefault(name, number) != number:
                raise DataError(f"{name}: is both {ROLES[seen[name]]} and {ROLES[number]}. Mend the lists.")


def _others(number: int, places: Sequence[int]) -> list[int]:
    away = set(places)
    return [place for place in range(number) if place not in away]


def _labelled_count(number: int | float, total: int, dataset: str) -> int:
    """As `_count`, but shares of the literature's data sets are rounded up, as there: 662 of 10,582 are 1/16."""
    if dataset in PUBLISHED and 0 < number < 1:
        return math.ceil(number * total)
    return _count(number, total)


def _count(number: int | float, total: int) -> int:
    return round(number * total) if 0 < number < 1 else int(number)
