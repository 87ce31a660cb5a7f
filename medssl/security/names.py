"""Which classes and functions a configuration may name."""

import importlib.util
import inspect
import pydoc
import re
from functools import cache
from typing import Any

from monai.bundle import ComponentLocator

_MONAI_PARTS = ("data", "engines", "handlers", "inferers", "losses", "metrics", "networks", "optimizers", "transforms")
_OWN_PARTS = (
    *("data", "distributions", "engine", "inference", "losses", "methods", "metrics", "networks", "report"),
    *("uncertainty", "core.distributed", "core.run_folder", "core.seeding"),
    # of medssl.bundle all that builds a training or an evaluation; not what runs another configuration
    *(f"bundle.{part}" for part in ("evaluating", "gbdl", "root", "scan_data", "scans", "training")),
)
ALLOWED = (
    *(f"monai.{part}" for part in _MONAI_PARTS),
    *("torch.nn", "torch.optim", "torch.device", "torch.utils.data.dataloader", "torch.cuda.is_available"),
    *("ignite.engine", "ignite.handlers", "ignite.metrics"),
    *(f"medssl.{part}" for part in _OWN_PARTS),
    "natural_image_ext",
    "medssl.security.gate.require_harmless",
)
PACKAGES = ("monai", "torch", "ignite", "medssl", "natural_image_ext")
OUR_FUNCTIONS = ("medssl.", "natural_image_ext.")  # of the others classes only: their functions read pickles and more
# downloads code and runs it, or sends what it is given to a server
_REFUSED_MODULES = re.compile(
    r"monai\.losses\.perceptual|monai\.handlers\.clearml_handlers|ignite\.handlers\.\w+_logger"
)
_SHORT_NAMES = tuple(f"medssl.{part}." for part in ("bundle",))  # names what lives in ALLOWED, and what does not
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
    """None if `name` is a class or function that lives in ALLOWED, not only reachable through it (torch.os.system).

    Nothing but the packages of ALLOWED is imported to find that out.
    """
    package = name.split(".", maxsplit=1)[0]
    if package not in PACKAGES:
        return f"{name!r} is code of '{package}', neither of MONAI nor of medssl."
    if not _is_within(name) and not name.startswith(_SHORT_NAMES):
        return f"{name!r} is not among what a bundle may call."
    try:
        thing = pydoc.locate(name)
    except pydoc.ErrorDuringImport:
        thing = None
    if not (inspect.isclass(thing) or inspect.isroutine(thing)):
        return f"{name!r} is no class or function."
    home = str(getattr(thing, "__module__", ""))
    is_allowed_kind = inspect.isclass(thing) or home.startswith(OUR_FUNCTIONS)
    if name in ALLOWED or (_is_within(home) and is_allowed_kind and not _REFUSED_MODULES.fullmatch(home)):
        return None
    return f"{name!r} is {home}.{getattr(thing, '__name__', '')}, which a bundle may not call."


def _is_within(name: str) -> bool:
    return any(name == allowed or name.startswith(f"{allowed}.") for allowed in ALLOWED)


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
