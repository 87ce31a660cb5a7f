"""Which classes and functions a configuration may name."""

import importlib.util
import inspect
import pydoc
import re
from functools import cache
from typing import Any

from monai.bundle import ComponentLocator
from torch import nn, optim

from medssl.security.listed_names import MODULE_PACKAGES, OUR_NAMES

PACKAGES = ("monai", "torch", "ignite", "medssl", "natural_image_ext")
OUR_PACKAGES = ("medssl", "natural_image_ext")
# of MONAI and torch classes only, and few of those that touch files: their functions read pickles and more
_FOREIGN_NAMES = frozenset(
    [
        *("monai.data.Dataset", "monai.handlers.StatsHandler", "monai.handlers.ValidationHandler"),
        *("torch.device", "torch.cuda.is_available"),
    ]
)
_FOREIGN_MODULES = ("monai.networks", "monai.losses", "torch.nn")  # of these the modules of torch
_FOREIGN_CLASSES = (*(f"monai.{part}" for part in ("inferers", "metrics", "optimizers", "transforms")), "torch.optim")
ALLOWED = (*sorted(OUR_NAMES), *MODULE_PACKAGES, *sorted(_FOREIGN_NAMES), *_FOREIGN_MODULES, *_FOREIGN_CLASSES)
# read or write files, download code or weights, or import what an argument names
_REFUSED = re.compile(
    r"monai\.losses\.perceptual\..*|monai\.transforms\.io\..*|monai\.optimizers\.lr_finder\..*"
    r"|monai\.inferers\.merger\.Zarr.*|monai\.networks\.nets\.(cell_sam_wrapper|transchex|hovernet|torchvision_fc)\..*"
    r"|monai\.networks\.blocks\.text_embedding\..*|monai\.transforms\..*\.(Rand)?(TorchVision|TorchIO|CuCIM)d?"
    r"|monai\..*\.\w*(Save|Write|Download)\w*"
)
_FILE_SUFFIXES = {"json", "csv", "list", "txt", "db", "pt", "gz", "nii", "html", "conf", "h5", "nrrd", "png"}


def check_target(target: Any) -> str | None:
    """What is wrong with a `_target_`; None for a class, or a function of ours, that a bundle may call."""
    if not isinstance(target, str) or not re.fullmatch(r"[A-Za-z]\w*(\.[A-Za-z]\w*)*", target):
        return f"_target_ {target!r} is not the plain name of a class or function."
    if "." in target:
        return check_name(target)
    module = _locator().get_component_module_name(target)
    modules = [module] if isinstance(module, str) else module or []
    if not modules:
        return f"_target_ {target!r} is no class of MONAI."
    return next((problem for place in modules if (problem := check_name(f"{place}.{target}"))), None)


@cache
def _locator() -> ComponentLocator:
    return ComponentLocator()


@cache
def check_name(name: str) -> str | None:
    """None if `name` is a class or function that a bundle may call, and not only reachable through one.

    Nothing but the packages of ALLOWED is imported to find that out.
    """
    package = name.split(".", maxsplit=1)[0]
    if package not in PACKAGES:
        return f"{name!r} is code of '{package}', neither of MONAI nor of medssl."
    return _check_ours(name) if package in OUR_PACKAGES else _check_foreign(name)


def _check_ours(name: str) -> str | None:
    """None for a listed name, also by the module that defines it, and for a network, loss or method."""
    if name in OUR_NAMES:
        return None
    short_name = name.rpartition(".")[2]
    alike = [listed for listed in OUR_NAMES if listed.rpartition(".")[2] == short_name]
    if alike or _is_within(name, MODULE_PACKAGES):
        thing = _located(name)
        is_listed = thing is not None and any(_located(listed) is thing for listed in alike)
        if is_listed or _is_module_of(thing, MODULE_PACKAGES):
            return None
    return f"{name!r} is not among what a bundle may call."


def _check_foreign(name: str) -> str | None:
    """None for the few names of MONAI and torch that are listed, and for classes that only compute."""
    thing = _located(name) if _is_within(name, ALLOWED) or name.startswith("monai.") else None
    home = f"{getattr(thing, '__module__', '')}.{getattr(thing, '__name__', '')}"
    if name in _FOREIGN_NAMES or any(thing is not None and _located(listed) is thing for listed in _FOREIGN_NAMES):
        return None
    if not inspect.isclass(thing) or _REFUSED.fullmatch(home):
        return f"{name!r} is not among what a bundle may call."
    if _downloads_by_default(thing):
        return f"{name!r} downloads its weights."
    is_class = _is_within(home, _FOREIGN_CLASSES) and (home.startswith("monai.") or _is_optimiser(thing))
    if is_class or _is_module_of(thing, _FOREIGN_MODULES):
        return None
    return f"{name!r} is {home}, which a bundle may not call."


def _located(name: str) -> Any:
    """What the name stands for; None if there is no such thing."""
    try:
        return pydoc.locate(name)
    except pydoc.ErrorDuringImport:
        return None


def _is_module_of(thing: Any, packages: tuple[str, ...]) -> bool:
    """Whether it is a class of torch modules that one of the packages defines."""
    return inspect.isclass(thing) and issubclass(thing, nn.Module) and _is_within(thing.__module__, packages)


def _is_optimiser(kind: type) -> bool:
    return issubclass(kind, optim.Optimizer | optim.lr_scheduler.LRScheduler)


def _downloads_by_default(kind: type) -> bool:
    """Whether a class fetches weights unless it is told not to."""
    try:
        parameter = inspect.signature(kind).parameters.get("pretrained")
    except (TypeError, ValueError):  # built in: it has no signature
        return False
    return parameter is not None and parameter.default is True


def _is_within(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def check_class_text(text: str) -> str | None:
    """What is wrong with a plain text that names code, such as `--method package.module:Class`; None for any other."""
    is_method = re.fullmatch(r"[A-Za-z]\w*(\.\w+)*:[A-Za-z]\w*", text)
    is_dotted = re.fullmatch(r"[A-Za-z]\w*(\.\w+)+", text)
    name = text.replace(":", ".")
    return check_name(name) if (is_method or is_dotted) and _is_importable(name) else None


def _is_importable(text: str) -> bool:
    """Whether `a.b` names something in an installed package: MONAI imports some arguments (and a.json is a file)."""
    package, last = text.split(".", maxsplit=1)[0], text.rsplit(".", maxsplit=1)[-1]
    return last not in _FILE_SUFFIXES and importlib.util.find_spec(package) is not None
