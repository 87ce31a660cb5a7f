"""The facts a trained network needs of its data, as plain JSON inside its bundle."""

from dataclasses import replace
from typing import Any

from medssl.core.errors import ConfigError
from medssl.data.datasets import AROUND_STRUCTURES, DatasetFacts, Geometry, Target, dataset_facts
from medssl.data.pipeline import Pipeline


def facts_to_json(pipeline: Pipeline) -> dict[str, Any]:
    """Name, window, sizes, labels: what `facts_from_json` needs to prepare a scan as in training."""
    facts, geometry = pipeline.facts, pipeline.geometry
    unusual: dict[str, Any] = {"region": geometry.region} if geometry.region != AROUND_STRUCTURES else {}
    if geometry.depth is not None:
        unusual["depth"] = geometry.depth
    return {
        "name": facts.name,
        "window": list(facts.window) if facts.window else None,
        "slice_size": list(geometry.slice_size) if geometry.slice_size else None,
        "region_size": list(geometry.region_size) if geometry.region_size else None,
        "patch_size": list(geometry.patch_size),
        **unusual,
        "label_map": {str(source): index for source, index in facts.target.label_map.items()},
        "structures": {str(index): name for index, name in facts.target.structures.items()},
    }


def facts_from_json(
    name: str,
    window: list[float] | None = None,
    slice_size: list[int] | None = None,
    region_size: list[int] | None = None,
    patch_size: list[int] | None = None,
    label_map: dict[str, int] | None = None,
    structures: dict[str, str] | None = None,
    region: str = AROUND_STRUCTURES,
    depth: int | None = None,
) -> DatasetFacts:
    """The facts written by `facts_to_json`; with a name alone, those of the data set as published."""
    facts = dataset_facts(name)
    if patch_size is None or label_map is None or structures is None:
        if not facts.targets:
            raise ConfigError(
                f"data_facts of '{name}': patch_size, label_map and structures are missing. "
                "Use the bundle that a training on the folder has written."
            )
        return replace(facts, target=next(iter(facts.targets.values())))
    patch = (patch_size[0], patch_size[1], patch_size[2])
    geometry = Geometry(_pair(slice_size), _pair(region_size), patch, region, depth)
    target = Target({int(k): v for k, v in label_map.items()}, {int(k): v for k, v in structures.items()})
    return replace(facts, window=_float_pair(window), geometry=geometry, target=target)


def _pair(size: list[int] | None) -> tuple[int, int] | None:
    return None if size is None else (int(size[0]), int(size[1]))


def _float_pair(window: list[float] | None) -> tuple[float, float] | None:
    return None if window is None else (float(window[0]), float(window[1]))
