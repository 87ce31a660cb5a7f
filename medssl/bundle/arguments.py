"""Arguments of what a configuration builds, checked against its signature before it is built."""

import inspect
import pydoc
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from monai.bundle.config_item import ConfigComponent

from medssl.bundle.command import Command
from medssl.core.errors import ConfigError
from medssl.core.options import unknown_name

_NUMBERS = {int, float, bool, type(None)}
_LISTS = {list, tuple, Sequence}


def check_arguments(command: Command) -> None:
    """ConfigError for an argument that what is built does not have, or a text where it takes numbers.

    Looked at are the network, and all else that a nested key of the command, such as `train#trainer#x`, belongs to.
    """
    places = {"network_def"} | {name.replace("::", "#").lstrip("+").rpartition("#")[0] for name in command.keys}
    for place in sorted(places - {""}):
        component = _inside(command.config, place)
        if isinstance(component, Mapping) and isinstance(component.get("_target_"), str):
            _check_component(place, component)


def _check_component(place: str, component: Mapping[str, Any]) -> None:
    target = _target(component)
    parameters = _parameters(target)
    if target is None or parameters is None:
        return  # MONAI says what is wrong with the target
    name_of_target = getattr(target, "__name__", component["_target_"])
    hints = _hints(target)
    for name, value in component.items():
        if name.startswith("_"):
            continue  # of MONAI, such as _mode_
        if name not in parameters:
            raise ConfigError(
                f"key '{place}#{name}': {unknown_name(name, parameters, f'{name_of_target}: argument')} "
                f"Correct the name, or leave the key out."
            )
        texts = [leaf for leaf in _leaves(value) if isinstance(leaf, str) and not leaf.startswith(("$", "@", "%"))]
        if texts and _takes_numbers_only(hints.get(name)):
            raise ConfigError(
                f"key '{place}#{name}' {value!r}: {texts[0]!r} is a text. {name_of_target} expects numbers. "
                "Give numbers, or leave the key out."
            )


def _inside(config: Mapping[str, Any], place: str) -> Any:
    """What lies at `latent#network_def`; None where nothing does."""
    value: Any = config
    for part in place.split("#"):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _target(component: Mapping[str, Any]) -> Callable[..., Any] | None:
    """The class or function that MONAI calls; None where it cannot be found."""
    try:
        target = pydoc.locate(ConfigComponent(dict(component)).resolve_module_name())
    except pydoc.ErrorDuringImport:
        return None
    return target if callable(target) else None


def _parameters(target: Callable[..., Any] | None) -> list[str] | None:
    """The names of the arguments; None where any name is taken, or nobody knows."""
    try:
        parameters = inspect.signature(target).parameters.values() if target else []
    except (TypeError, ValueError):
        return None
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return [parameter.name for parameter in parameters]


def _hints(target: Callable[..., Any]) -> dict[str, Any]:
    """The types of the arguments, as far as Python can tell them."""
    try:
        return typing.get_type_hints(target.__init__ if inspect.isclass(target) else target)
    except (NameError, TypeError):
        return {}


def _leaves(value: Any) -> Iterator[Any]:
    """A value, or the values in a list of lists."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _takes_numbers_only(hint: Any) -> bool:
    """Whether a type is a number, a list of numbers, or a choice of those."""
    if hint in _NUMBERS:
        return True
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    is_union = isinstance(hint, types.UnionType) or origin is typing.Union
    if not is_union and origin not in _LISTS:
        return False
    return all(part is Ellipsis or _takes_numbers_only(part) for part in inner)
