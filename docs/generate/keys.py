"""Write medssl/core/bundle_keys.json from the options of the bundles' parts: `make keys`."""

import dataclasses
import json
import types
import typing
from pathlib import Path
from typing import Any

from medssl.bundle.gbdl import GBDLTraining
from medssl.bundle.scan_data import ScanDataOptions
from medssl.bundle.training import ScanTraining
from medssl.core.key_facts import STORED
from medssl.inference.scoring import ScoringOptions
from medssl.methods.registry import find_method, method_names
from medssl.methods.variants import VARIANTS
from natural_image_ext.bundle.begin import PICTURE_PARTS, SCENE_PARTS

KINDS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
SIZES = {int: "whole numbers such as 8,8,8", float: "numbers such as -100,250"}
NETWORK = "the network: its `_target_` and its arguments, e.g. network_def#widths"
LISTED = {  # keys that a train.json lists and that are an option of no part
    "bundle_root": ("the folder of the bundle", "a text"),
    "device": ("where it computes, e.g. cuda:0 or cpu; default: a GPU if there is one", "a text"),
    "network_def": (NETWORK, "a part of the configuration"),
    "num_classes": ("number of classes of the network, with the background; default: the data set's", "a whole number"),
    "variant": (f"the variant of GBDL: {', '.join(VARIANTS)}; several are joined with +", "a text"),
    "latent": ("the network of GBDL's first stage, e.g. latent#network_def#latent_dim", "a part of the configuration"),
    "method": ("the method: one of medssl's, or package.module:Class of your own", "a text"),
    "options": ("options of the method, as a dictionary", "a part of the configuration"),
}
EVERYWHERE = ("bundle_root", "device", "network_def")
ROOT = Path(__file__).parents[2]


def all_keys() -> dict[str, list[dict[str, Any]]]:
    """Bundle -> its keys, as bundle_keys.json has them."""
    scans, gbdl = _keys_of(*ScanTraining.parts), _keys_of(*GBDLTraining.parts, find_method("gbdl").Options)
    one_stage = [name for name in method_names() if not find_method(name).bundle]
    methods = [{**key, "method": name} for name in one_stage for key in _keys_of(find_method(name).Options)]
    pictures, scenes = _keys_of(*PICTURE_PARTS), _keys_of(*SCENE_PARTS)
    slices = [{**key, "overlay": "scans"} for key in _keys_of(ScanDataOptions, ScoringOptions)]
    return {
        "gbdl": _listed("variant", "latent", "num_classes") + gbdl,
        "mcdropout_unet3d": _listed("num_classes") + scans,
        "np_match": _listed() + pictures,
        "np_semiseg": _listed() + scenes + slices,
        "teacher_student": _listed("method", "options", "num_classes") + scans + methods,
    }


def _listed(*names: str) -> list[dict[str, Any]]:
    keys = [(name, *LISTED[name]) for name in (*EVERYWHERE, *names)]
    return [{"name": name, "meaning": meaning, "part": "train.json", "kind": kind} for name, meaning, kind in keys]


def _keys_of(*parts: type) -> list[dict[str, Any]]:
    keys: dict[str, dict[str, Any]] = {}
    for part in parts:
        hints = typing.get_type_hints(part)
        for field in dataclasses.fields(part):
            keys.setdefault(field.name, _key(part, field, hints[field.name]))
    return list(keys.values())


def _key(part: type, field: dataclasses.Field, hint: Any) -> dict[str, Any]:
    facts = field.metadata
    kind = _kind(hint)
    default = list(field.default) if isinstance(field.default, tuple) else field.default
    key = {"name": field.name, "meaning": facts["meaning"], "part": part.__name__, "kind": kind, "default": default}
    limits = {name: facts[name] for name in ("at_least", "at_most") if facts[name] is not None}
    return {**key, **limits, **({"choices": list(facts["choices"])} if facts["choices"] else {})}


def _kind(hint: Any) -> str:
    """`a number` of `int | float | None`."""
    is_union = isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union
    parts = [part for part in (typing.get_args(hint) if is_union else (hint,)) if part is not type(None)]
    lists = [SIZES[typing.get_args(part)[0]] for part in parts if typing.get_origin(part) is list]
    plain = [part for part in parts if part in KINDS and not (part is int and float in parts)]
    return " or ".join([*lists, *(KINDS[part] for part in plain)]) or "any"


def text() -> str:
    """The content of bundle_keys.json, a line a key."""
    bundles = []
    for bundle, keys in all_keys().items():
        lines = ",\n".join(f"        {json.dumps(key, ensure_ascii=False)}" for key in keys)
        bundles.append(f'    "{bundle}": [\n{lines}\n    ]')
    return "{\n" + ",\n".join(bundles) + "\n}\n"


if __name__ == "__main__":
    STORED.write_text(text(), encoding="utf-8")
    print(f"{STORED.relative_to(ROOT)}: {sum(len(keys) for keys in all_keys().values())} keys")
