"""A network's definition as JSON: the `network_def` of an exported bundle, from which the same network is built."""

import enum
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import nn

from medssl.core.errors import ConfigError


def network_config_of(definition: Mapping[str, Any]) -> dict[str, Any]:
    """`definition` as JSON: `_target_` and the constructor's arguments, all resolved; tuples become lists.

    _target_: as in MONAI's configurations, `VNet` or `monai.networks.nets.VNet` or a class of your own. Keys that MONAI
    gives another meaning (`_desc_`, ...) are left out. ConfigError names an argument that JSON cannot hold.
    """
    target = definition.get("_target_")
    if not isinstance(target, str) or not target:
        raise ConfigError(f"network_def: _target_ is {target!r}, expected the name of a class, for example VNet.")
    arguments = {name: value for name, value in definition.items() if not _is_special(name)}
    return {"_target_": target, **{name: _as_json(value, name) for name, value in arguments.items()}}


def config_of_built(network: nn.Module) -> dict[str, Any]:
    """The definition of a network that keeps its constructor's arguments in `arguments`; ConfigError for others."""
    arguments = getattr(network, "arguments", None)
    name = f"{type(network).__module__}.{type(network).__name__}"
    if not isinstance(arguments, Mapping):
        raise ConfigError(
            f"network {name}: how it was built is not known, so no bundle can be exported. Hand over its network_def "
            "(network_config), or keep the constructor's arguments in its attribute `arguments`."
        )
    return network_config_of({"_target_": name, **arguments})


def _is_special(name: str) -> bool:
    return name.startswith("_") and name.endswith("_")


def _as_json(value: Any, argument: str) -> Any:
    """`value` in JSON's types; `argument` is its name in errors."""
    if isinstance(value, enum.Enum):
        value = value.value
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):
        return {str(key): _as_json(part, f"{argument}::{key}") for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(part, f"{argument}::{place}") for place, part in enumerate(value)]
    if isinstance(value, str) and value.startswith(("$", "@", "%")):
        raise ConfigError(f"network_def: {argument} is '{value}', expected its value. Resolve the configuration first.")
    is_finite_number = isinstance(value, int | float) and math.isfinite(value)
    if value is None or isinstance(value, str) or is_finite_number:
        return value
    raise ConfigError(
        f"network_def: {argument} is {value!r} ({type(value).__name__}), which a bundle's JSON cannot hold. Give "
        "texts, numbers and lists only, or a class of your own that makes the rest."
    )
