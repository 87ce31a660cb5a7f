"""What a bundle would run, looked at before it runs: `check_bundle` reads its files and executes none of them.

MONAI calls any `_target_` and evaluates any `$` expression of a configuration, and logging.conf is evaluated too. A
bundle without findings names only classes and functions of `ALLOWED` and has expressions too simple to leave them. It
is still no stranger's code to run on patients' data without reading it.
"""

import ast
import configparser
import importlib.util
import inspect
import json
import pydoc
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from monai.bundle import ComponentLocator

_MONAI_PARTS = ("data", "engines", "handlers", "inferers", "losses", "metrics", "networks", "optimizers", "transforms")
_OWN_PARTS = (
    *("data", "distributions", "engine", "inference", "losses", "methods", "metrics", "networks", "report"),
    *("uncertainty", "core.distributed", "core.run_folder", "core.seeding"),
    # of medssl.bundle all that builds a training; not what runs another configuration
    *(f"bundle.{part}" for part in ("gbdl", "root", "scan_data", "scans", "training")),
)
ALLOWED = (
    *(f"monai.{part}" for part in _MONAI_PARTS),
    *("torch.nn", "torch.optim", "torch.device", "torch.utils.data.dataloader", "torch.cuda.is_available"),
    *("ignite.engine", "ignite.handlers", "ignite.metrics"),
    *(f"medssl.{part}" for part in _OWN_PARTS),
    "natural_image_ext",
)
_SHORT_NAMES = tuple(f"medssl.{part}." for part in ("bundle",))  # names what lives in ALLOWED, and what does not
_IMPORTS = ("monai", "torch", "ignite", "medssl", "natural_image_ext")
_OUR_FUNCTIONS = ("medssl.", "natural_image_ext.")  # of the others classes only: their functions read pickles and more
_NODES = (
    *(ast.Expression, ast.Name, ast.Load, ast.Attribute, ast.Call, ast.keyword, ast.Subscript, ast.Constant),
    *(ast.List, ast.Tuple, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod),
    *(ast.UnaryOp, ast.Not, ast.USub),
)
_NO_BUNDLE_FILES = {".py", ".pyc", ".so", ".sh", ".pkl", ".pickle", ".ts", ".yaml", ".yml"}
_REFERENCE = re.compile(r"@\w*(?:(?:#|::)\w*)*")
_MACRO = re.compile(r"%[#:]*\w+(?:(?:#|::)\w+)*")
_FILE_SUFFIXES = {"json", "csv", "list", "txt", "db", "pt", "gz", "nii", "html", "conf", "h5", "nrrd", "png"}
_LARGEST_BYTES = 1_000_000


def check_bundle(folder: str | Path) -> list[str]:
    """Findings about the bundle in `folder`, each `file: key: what is wrong`; an empty list if it may be run."""
    folder = Path(folder)
    configs = sorted(folder.rglob("*.json"))
    findings = [] if configs else [f"{folder}: no configuration to check. Expected configs/*.json."]
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in _NO_BUNDLE_FILES:
            findings.append(
                f"{path.relative_to(folder)}: code or a format that can hold code has no place in a bundle."
            )
        if path.is_symlink():
            findings.append(f"{path.relative_to(folder)}: a link; a bundle holds its files itself.")
    loaded: dict[str, Any] = {}
    for path in configs:
        name = str(path.relative_to(folder))
        try:
            if path.stat().st_size > _LARGEST_BYTES:
                raise ValueError(f"{path.stat().st_size} bytes, expected at most {_LARGEST_BYTES}")
            content = json.loads(path.read_text())
            loaded[name] = content if list(_leaves(content)) else {}  # nested too deeply raises here
        except (ValueError, OSError, RecursionError) as error:
            findings.append(f"{name}: cannot be read ({error}).")
    modules = _imported_modules(loaded.values())
    for name, config in loaded.items():
        found = check_config(config, modules, with_paths=Path(name).name != "metadata.json")
        findings += [f"{name}: {finding}" for finding in found]
    for path in folder.rglob("*.conf"):
        findings += [f"{path.relative_to(folder)}: {finding}" for finding in _check_logging(path)]
    return findings


def check_config(config: Any, modules: dict[str, set[str]] | None = None, with_paths: bool = True) -> list[str]:
    """Findings about one configuration; `modules`: what the names of the bundle's import statements stand for."""
    modules = _imported_modules([config]) if modules is None else modules
    findings = []
    for key, value in _leaves(config):
        last = next((part for part in reversed(re.split(r"#|::", key)) if not part.isdigit()), "").lstrip("+")
        problem = _check_key(last, value)
        if problem is None and isinstance(value, str):
            problem = _check_text(value, modules, with_paths)
        if problem is not None:
            findings.append(f"{key}: {problem}")
    return findings


def _leaves(config: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(key, value) of everything that is no dict or list; dicts and lists too, where a special key holds them."""
    if isinstance(config, dict | list):
        pairs = config.items() if isinstance(config, dict) else enumerate(config)
        for key, value in pairs:
            if isinstance(value, dict | list) and str(key).endswith("_target_"):
                yield f"{prefix}::{key}", value
            yield from _leaves(value, f"{prefix}::{key}" if prefix else str(key))
    else:
        yield prefix, config


def _check_key(key: str, value: Any) -> str | None:
    """What is wrong with the value of a key that MONAI gives a meaning to."""
    if key == "_target_":
        return _check_target(value)
    if key == "_mode_" and value != "default":
        return f"_mode_ {value!r}: only 'default' may be used."
    if key == "_debug_" and value:
        return "starts a debugger."
    if key in ("reader", "writer") and isinstance(value, str) and not re.fullmatch(r"\w+", value):
        return f"{value!r}: MONAI would import and call it. Name a reader of MONAI."
    if (key == "allow_pickle" and value is not False) or (key == "weights_only" and value is not True):
        return "lets a file run code when it is read."
    return None


def _check_target(target: Any) -> str | None:
    if not isinstance(target, str) or not re.fullmatch(r"[A-Za-z]\w*(\.[A-Za-z]\w*)*", target):
        return f"_target_ {target!r} is not the plain name of a class or function."
    if "." in target:
        return _check_name(target)
    found = _locator().get_component_module_name(target)
    places = [found] if isinstance(found, str) else found or []
    if not places:
        return f"_target_ {target!r} is no class of MONAI."
    return next((problem for place in places if (problem := _check_name(f"{place}.{target}"))), None)


@cache
def _locator() -> ComponentLocator:
    return ComponentLocator()


@cache
def _check_name(name: str) -> str | None:
    """None if `name` is a class or function that lives in ALLOWED, not only reachable through it (torch.os.system)."""
    if not _is_within(name) and not name.startswith(_SHORT_NAMES):
        return f"{name!r} is not among what a bundle may call."
    try:
        found = pydoc.locate(name)
    except pydoc.ErrorDuringImport:
        found = None
    if not (inspect.isclass(found) or inspect.isroutine(found)):
        return f"{name!r} is no class or function."
    home = str(getattr(found, "__module__", ""))
    if name in ALLOWED or (_is_within(home) and (inspect.isclass(found) or home.startswith(_OUR_FUNCTIONS))):
        return None
    return f"{name!r} is {home}.{getattr(found, '__name__', '')}, which a bundle may not call."


def _is_within(name: str) -> bool:
    return any(name == allowed or name.startswith(f"{allowed}.") for allowed in ALLOWED)


def _check_text(text: str, modules: dict[str, set[str]], with_paths: bool) -> str | None:
    if text.startswith("$"):
        return _check_expression(text[1:], modules)
    if text.startswith("%"):
        return None if _MACRO.fullmatch(text) else f"{text!r} reads another file."
    return _check_path(text) if with_paths else None


def _check_path(text: str) -> str | None:
    if re.fullmatch(r"[A-Za-z]\w*(\.\w+)*:[A-Za-z]\w*", text) and _is_importable(text.replace(":", ".")):
        return _check_name(text.replace(":", "."))  # a method of somebody's package: --method package.module:Class
    if re.fullmatch(r"[A-Za-z]\w*(\.\w+)+", text) and _is_importable(text):
        return _check_name(text)
    parts = re.split(r"[/\\]", text)
    if text.startswith(("/", "\\", "~")) or re.match(r"[A-Za-z]:[/\\]", text) or ".." in parts:
        return f"{text!r} leaves the bundle. Use a path relative to bundle_root."
    return f"{text!r} is a network address." if "://" in text else None


def _is_importable(text: str) -> bool:
    """Whether `a.b` names something in an installed package: MONAI imports some arguments (and a.json is a file)."""
    root, last = text.split(".", maxsplit=1)[0], text.rsplit(".", maxsplit=1)[-1]
    return last not in _FILE_SUFFIXES and importlib.util.find_spec(root) is not None


def _imported_modules(configs: Any) -> dict[str, set[str]]:
    """Name -> modules it may stand for in an expression; torch and monai are there without an import."""
    modules = {"torch": {"torch"}, "monai": {"monai"}}
    for _, value in (leaf for config in configs for leaf in _leaves(config)):
        if isinstance(value, str) and value.startswith("$") and (alias := _parse_import(value[1:])):
            modules.setdefault(alias.asname or alias.name.split(".")[0], set()).add(
                alias.name if alias.asname else alias.name.split(".")[0]
            )
    return modules


def _parse_import(statement: str) -> ast.alias | None:
    """The one alias of a single `import a.b as c`, else None."""
    try:
        body = ast.parse(statement).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if len(body) == 1 and isinstance(body[0], ast.Import) and len(body[0].names) == 1:
        return body[0].names[0]
    return None


def _check_expression(expression: str, modules: dict[str, set[str]]) -> str | None:
    imported = _parse_import(expression)
    if imported is not None:
        allowed = imported.name.split(".")[0] in _IMPORTS
        return None if allowed else f"imports {imported.name}, which a bundle may not use."
    references: dict[str, str] = {}

    def named(match: re.Match[str]) -> str:
        return references.setdefault(match.group(), f"reference{len(references)}")

    try:
        tree = ast.parse(_REFERENCE.sub(named, expression), mode="eval")
        return _check_tree(tree, set(references.values()), modules)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return f"'${expression}' is no simple expression."


def _check_tree(tree: ast.Expression, references: set[str], modules: dict[str, set[str]]) -> str | None:
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    suffixes = {id(node.right) for node in ast.walk(tree) if isinstance(node, ast.BinOp)}
    for node in ast.walk(tree):
        problem = None
        if not isinstance(node, _NODES):
            problem = f"{type(node).__name__} is more than a configuration needs: put it into a function."
        elif isinstance(node, ast.Constant):
            problem = _check_constant(node.value, is_suffix=id(node) in suffixes)
        elif isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            problem = f"uses the hidden name {node.attr!r}."
        elif isinstance(node, ast.Attribute | ast.Name) and id(node) not in inner:
            problem = _check_chain(ast.unparse(node), node, references, modules)
        if problem is not None:
            return problem
    return None


def _check_constant(value: Any, is_suffix: bool) -> str | None:
    if not isinstance(value, str | int | float | None):
        return f"a constant of type {type(value).__name__}."
    if not isinstance(value, str):
        return None
    if "__" in value:
        return f"uses the hidden name {value!r}."
    return _check_path(value.lstrip("/") if is_suffix else value)


def _check_chain(text: str, node: ast.expr, references: set[str], modules: dict[str, set[str]]) -> str | None:
    """What is wrong with `a.b.c`: it must start at a reference, or be the name of something a bundle may call."""
    while isinstance(node, ast.Attribute):
        node = node.value
    if not isinstance(node, ast.Name) or node.id in references:
        return None  # of an object that was checked where it was made
    if node.id not in modules:
        return f"uses {node.id!r}."
    names = [module + text.removeprefix(node.id) for module in sorted(modules[node.id])]
    foreign = [name for name in names if not name.startswith(_OUR_FUNCTIONS) and name not in ALLOWED]
    if foreign:
        return f"{foreign[0]!r}: an expression calls functions of medssl; make other objects with _target_."
    return next((problem for name in names if (problem := _check_name(name))), None)


def _check_logging(path: Path) -> Iterator[str]:
    """logging.config evaluates the class and arguments of every handler."""
    parser = configparser.RawConfigParser()
    try:
        parser.read(path)
    except (configparser.Error, UnicodeDecodeError) as error:
        yield f"cannot be read ({type(error).__name__})."
    for section in parser.sections():
        values = dict(parser.items(section))
        if values.get("class", "StreamHandler") not in (
            "StreamHandler",
            "NullHandler",
            "Formatter",
            "logging.Formatter",
        ):
            yield f"{section}: class {values['class']!r}; only StreamHandler may be used."
        if values.get("args", "()").replace(" ", "") not in ("()", "(sys.stderr,)", "(sys.stdout,)"):
            yield f"{section}: args {values['args']!r} would be evaluated; expected (sys.stderr,)."
        if values.get("kwargs", "{}") != "{}":
            yield f"{section}: kwargs {values['kwargs']!r} would be evaluated."
