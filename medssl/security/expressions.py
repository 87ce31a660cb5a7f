"""Which `$` expressions are simple enough: names that were checked, calls of functions of ours, a little arithmetic."""

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from medssl.security.listed_names import IMPORTED_MODULES
from medssl.security.names import OUR_PACKAGES, PACKAGES, check_class_text, check_name
from medssl.security.paths import check_path
from medssl.security.special_keys import check_special_key
from medssl.security.sums import check_operation, is_in_known_sum

_NODES = (
    *(ast.Expression, ast.Name, ast.Load, ast.Attribute, ast.Call, ast.keyword, ast.Subscript, ast.Constant),
    *(ast.List, ast.Tuple, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv),
    *(ast.UnaryOp, ast.Not, ast.USub),
)
# what the objects of our bundles, of today and of before, are asked for: any other method might write a file
_ATTRIBUTES = frozenset(
    [
        "augmentation",
        "averaged",
        "backbone",
        "batch_size",
        "cases",
        "check",
        "classes",
        "confidence",
        "counts",
        "crop",
        "crop_to",
        "curriculum",
        "dataset",
        "dropout",
        "ema_decay",
        "epochs",
        "evaluated",
        "evaluation",
        "facts",
        "finish",
        "finish_first",
        "first_trainer",
        "geometry",
        "head",
        "head_factor",
        "hidden",
        "label_ids",
        "learning_rate",
        "method_facts",
        "mixed_patches",
        "num_classes",
        "parameters",
        "patch_size",
        "patches_for",
        "preprocessing",
        "raise_failures",
        "ratio",
        "require_finished",
        "role",
        "run",
        "run_earlier_stages",
        "run_first",
        "size",
        "strong",
        "test",
        "title",
        "two_weak",
        "uncertainty",
        "unlabelled_weight",
        "validation",
        "validator",
        "void",
        "warm_up_epochs",
        "weight_decay",
        "with_hidden_labels",
        "with_lrl",
    ]
)
# what our bundles take out of the facts of a run and of its settings: any other could be a text, such as a path
_ENTRIES = frozenset(["crop_to", "paper_crop", "pavpu_threshold_nats", "pavpu_window", "void"])
_CALLED_OTHERS = ("torch.device", "torch.cuda.is_available")
_REFERENCE = re.compile(r"@\w*(?:::\w*)*")
_STAND_IN = "_reference_"  # of a reference while an expression is parsed


@dataclass(frozen=True)
class Surroundings:
    """What the other texts of a bundle say about the names in an expression.

    modules: name -> modules that it may stand for. definitions: id -> the values that the files give it.
    """

    modules: Mapping[str, set[str]]
    definitions: Mapping[str, list[Any]] = field(default_factory=dict)


def imported_modules(texts: Iterable[str]) -> dict[str, set[str]]:
    """Name -> modules it may stand for in an expression; torch and monai are there without an import."""
    modules = {"torch": {"torch"}, "monai": {"monai"}}
    for text in texts:
        if text.startswith("$") and (alias := _parse_import(text[1:])):
            package = alias.name.split(".")[0]
            modules.setdefault(alias.asname or package, set()).add(alias.name if alias.asname else package)
    return modules


def check_expression(expression: str, around: Surroundings) -> str | None:
    """What is wrong with the text behind a `$`; around: what the bundle says about its names."""
    imported = _parse_import(expression)
    if imported is not None:
        return _check_import(imported.name)
    seen_by_monai = expression.replace("#", "::")  # MONAI does so before all else, also where it is no separator
    if _STAND_IN in seen_by_monai:
        return f"uses {_STAND_IN!r}."
    stand_ins: dict[str, str] = {}

    def stand_in(match: re.Match[str]) -> str:
        return stand_ins.setdefault(match.group(), f"{_STAND_IN}{len(stand_ins)}")

    try:
        tree = ast.parse(_REFERENCE.sub(stand_in, seen_by_monai), mode="eval")
        references = {name: reference.removeprefix("@") for reference, name in stand_ins.items()}
        return _check_tree(tree, references, around)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return f"'${expression}' is no simple expression."


def _parse_import(statement: str) -> ast.alias | None:
    """The one alias of a single `import a.b as c`, else None."""
    try:
        body = ast.parse(statement).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if len(body) == 1 and isinstance(body[0], ast.Import) and len(body[0].names) == 1 and "#" not in statement:
        return body[0].names[0]
    return None


def _check_import(module: str) -> str | None:
    parts = module.split(".")
    if parts[0] not in PACKAGES or any(part.startswith("_") for part in parts):
        return f"imports {module}, which a bundle may not use."
    if parts[0] in OUR_PACKAGES and module not in IMPORTED_MODULES:
        return f"imports {module}, which no bundle needs."
    return None


def _check_tree(tree: ast.Expression, references: dict[str, str], around: Surroundings) -> str | None:
    nodes = list(ast.walk(tree))
    inner = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    sums = [node for node in nodes if isinstance(node, ast.BinOp) and is_in_known_sum(node, references)]
    checked_texts = {id(side) for node in sums for side in (node.left, node.right)}
    for node in nodes:
        problem = None if id(node) in checked_texts and isinstance(node, ast.Constant) else _check_node(node)
        if problem is None and isinstance(node, ast.BinOp):
            problem = check_operation(node, references, around.definitions)
        if problem is None and isinstance(node, ast.Attribute | ast.Name) and id(node) not in inner:
            problem = _check_chain(node, references, around.modules)
        if problem is not None:
            return problem
    return None


def _check_node(node: ast.AST) -> str | None:
    """What is wrong with a node by itself."""
    if not isinstance(node, _NODES):
        return f"{type(node).__name__} is more than a configuration needs: put it into a function."
    if isinstance(node, ast.Constant):
        return _check_constant(node.value)
    hidden = node.attr if isinstance(node, ast.Attribute) and node.attr.startswith("_") else None
    if isinstance(node, ast.Call) and not isinstance(node.func, ast.Attribute):
        return "calls something other than a function of a module or of an object."
    if isinstance(node, ast.Subscript):
        return _check_entry(node.slice)
    if isinstance(node, ast.keyword) and node.arg is not None:
        return check_special_key(node.arg, node.value.value if isinstance(node.value, ast.Constant) else node.value)
    return f"uses the hidden name {hidden!r}." if hidden else None


def _check_entry(key: ast.expr) -> str | None:
    """What is wrong with the key of `facts[key]`: a number, or one of the entries that our bundles ask for."""
    value = key.value if isinstance(key, ast.Constant) else None
    if isinstance(value, int) or value in _ENTRIES:
        return None
    taken = repr(value) if value is not None else "of another name"
    return f"takes an entry, {taken}, which no bundle needs. Known: {', '.join(sorted(_ENTRIES))}."


def _check_constant(value: Any) -> str | None:
    if not isinstance(value, str | int | float | None):
        return f"a constant of type {type(value).__name__}."
    if not isinstance(value, str):
        return None
    if _STAND_IN in value:
        return "has a reference inside of a text, where MONAI would put code."
    if "__" in value:
        return f"uses the hidden name {value!r}."
    return check_class_text(value) or check_path(value)


def _check_chain(node: ast.expr, references: Mapping[str, str], modules: Mapping[str, set[str]]) -> str | None:
    """What is wrong with `a.b.c`: it must start at a reference, or be the name of something a bundle may call."""
    text, attributes = ast.unparse(node), list[str]()
    while isinstance(node, ast.Attribute):
        attributes.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id in references:
        unknown = [name for name in attributes if name not in _ATTRIBUTES]
        return f"asks an object for '{unknown[0]}', which no bundle needs: put it into a function." if unknown else None
    if node.id not in modules:
        return f"uses {node.id!r}."
    names = [module + text.removeprefix(node.id) for module in sorted(modules[node.id])]
    foreign = [name for name in names if name.split(".")[0] not in OUR_PACKAGES and name not in _CALLED_OTHERS]
    if foreign:
        return f"{foreign[0]!r}: an expression calls functions of medssl; make other objects with _target_."
    return next((problem for name in names if (problem := check_name(name))), None)
