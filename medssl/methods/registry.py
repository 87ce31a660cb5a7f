"""Methods by name: a file of medssl/methods, or any class as `package.module:Class`."""

import importlib
import importlib.metadata
import inspect
import pkgutil
from types import ModuleType

from medssl.core.errors import ConfigError, MedsslError
from medssl.core.options import unknown_name
from medssl.methods.facts import MethodFacts
from medssl.methods.method import Method

PACKAGE = "medssl.methods"


def find_method(name: str) -> type[Method]:
    """The method called `name`: `mean_teacher`, or `my_package.my_module:MyMethod` of anybody.

    Raises ConfigError with the nearest known name, or with what is wrong with the class.
    """
    if ":" in name:
        return _elsewhere(name)
    known = method_names()
    if name not in known:
        raise ConfigError(f"{unknown_name(name, known, 'method')} A method of your own: --method package.module:Class.")
    return _method_in(importlib.import_module(f"{PACKAGE}.{name}"))


def method_names() -> list[str]:
    """The methods that medssl has, by name: the modules of medssl/methods that define one."""
    return [module.__name__.rpartition(".")[2] for module in _modules() if _methods_in(module)]


def facts_of_title(title: str) -> MethodFacts | None:
    """The facts of the method with this title, for runs that were made before they stored them; None if unknown."""
    return _facts_by_title().get(title.casefold())


def _facts_by_title() -> dict[str, MethodFacts]:
    """Every known title -> its facts: of methods, of what modules name in `known_facts`, and of other packages.

    A package adds its own by the entry point group `medssl.method_facts`; a title that medssl has, too, means medssl's.
    """
    facts: list[MethodFacts] = []
    for entry in importlib.metadata.entry_points(group="medssl.method_facts"):
        try:
            facts += entry.load()()
        except (ImportError, MedsslError):  # an extra that is not installed
            continue
    facts += [known for module in _modules() for known in getattr(module, "known_facts", list)()]
    facts += [find_method(name).facts for name in method_names()]
    return {known.title.casefold(): known for known in facts}


def _modules() -> list[ModuleType]:
    """The files of medssl/methods."""
    package = importlib.import_module(PACKAGE)
    names = [module.name for module in pkgutil.iter_modules(package.__path__) if not module.ispkg]
    return [importlib.import_module(f"{PACKAGE}.{name}") for name in names]


def _elsewhere(name: str) -> type[Method]:
    module_name, _, class_name = name.partition(":")
    try:
        found = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"method '{name}': {error}. Is the package installed, or its folder in PYTHONPATH?"
        ) from error
    if not (inspect.isclass(found) and issubclass(found, Method)):
        raise ConfigError(f"method '{name}': not a subclass of medssl.methods.Method.")
    if not hasattr(found, "facts"):
        raise ConfigError(f"method '{name}': has no facts. Give it `facts = MethodFacts(title=..., ...)`.")
    return found


def _method_in(module: ModuleType) -> type[Method]:
    """The one method of a file of medssl/methods; ConfigError if it has several, since a name means one."""
    methods = _methods_in(module)
    if len(methods) != 1:
        names = ", ".join(method.__name__ for method in methods)
        raise ConfigError(f"{module.__name__}: has facts of {len(methods)} methods ({names}), expected those of one.")
    return methods[0]


def _methods_in(module: ModuleType) -> list[type[Method]]:
    """The methods that a module defines: classes with facts of their own."""
    return [
        value
        for value in vars(module).values()
        if inspect.isclass(value)
        and issubclass(value, Method)
        and value.__module__ == module.__name__
        and "facts" in vars(value)
    ]
