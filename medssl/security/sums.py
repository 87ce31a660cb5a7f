"""Which sums and products of an expression are simple enough: no path out of the bundle, no text put together."""

import ast
import re
from collections.abc import Mapping
from typing import Any

from medssl.security.names import check_class_text
from medssl.security.paths import check_path

FOLDERS = ("bundle_root", "output_dir", "dataset_dir", "bundle")  # keys that a bundle adds '/...' to
_LARGEST_FACTOR = 1_000_000_000
_FOLDER_FORMS = (
    r"@(?:bundle_root|output_dir|dataset_dir|bundle)",
    r"\$@(?:bundle_root|output_dir|dataset_dir|bundle) \+ '/[\w./ -]+'",
    r"\$'[\w-]+/' \+ @dataset_name",
    r"\$bundle\.bundle_root\('\w+'\)",
)


def check_folder(key: str, value: Any) -> str | None:
    """What is wrong with the value of a key at the top that is one of FOLDERS: '/...' is put behind it."""
    parts = [part.lstrip("+") for part in re.split(r"#|::", key) if part]
    if not parts or parts[0] not in FOLDERS or value is None:
        return None
    if len(parts) > 1 or not isinstance(value, str):
        return f"{value!r}: expected the path of a folder."
    if not value.strip():
        return f"{value!r} is an empty path, and what is put behind it would begin at the root of the disk."
    is_known_form = any(re.fullmatch(form, value) for form in _FOLDER_FORMS)
    if value.startswith(("$", "@", "%")) and not is_known_form:
        return f"{value!r}: expected a path, or '$@bundle_root + \"/name\"'."
    return None


def check_operation(node: ast.BinOp, references: Mapping[str, str], definitions: Mapping[str, list[Any]]) -> str | None:
    """What is wrong with `a + b`, `a * b` and so on.

    references: stand-in -> the id that it refers to. definitions: id -> what the bundle's files give it.
    """
    if isinstance(node.op, ast.Add):
        return _check_sum(node, references)
    if isinstance(node.op, ast.Mult):
        return _check_product(node, references, definitions)
    if any(_text(side) is not None for side in (node.left, node.right)):
        return "calculates with a text."
    return None


def is_in_known_sum(node: ast.BinOp, references: Mapping[str, str]) -> bool:
    """Whether it is `@folder + '/name'` or `'name/' + @dataset_name`: its text was checked with the sum."""
    return isinstance(node.op, ast.Add) and (_suffix(node, references) or _prefix(node, references)) is not None


def _check_sum(node: ast.BinOp, references: Mapping[str, str]) -> str | None:
    text = _suffix(node, references) or _prefix(node, references)
    if text is not None:
        if ".." in text or "__" in text or "//" in text:
            return f"{text!r} leaves the bundle. Use a path relative to bundle_root."
        return check_class_text(text.strip("/")) or check_path(text.lstrip("/"))
    if _is_number(node.left) or _is_number(node.right):
        return None
    known = ", ".join(f"@{key}" for key in FOLDERS)
    return (
        f"'{_written(node, references)}' puts a text together. Expected one of {known} "
        "with '/name' behind it, or a number."
    )


def _written(node: ast.expr, references: Mapping[str, str]) -> str:
    """The expression as it stands in the file."""
    text = ast.unparse(node)
    for stand_in in reversed(list(references)):  # _reference_10 before _reference_1
        text = text.replace(stand_in, f"@{references[stand_in]}")
    return text


def _suffix(node: ast.BinOp, references: Mapping[str, str]) -> str | None:
    """The text behind a folder's key."""
    text = _text(node.right)
    is_folder = isinstance(node.left, ast.Name) and references.get(node.left.id) in FOLDERS
    return text if is_folder and text is not None and text.startswith("/") else None


def _prefix(node: ast.BinOp, references: Mapping[str, str]) -> str | None:
    """The text before the name of a data set."""
    text = _text(node.left)
    is_name = isinstance(node.right, ast.Name) and references.get(node.right.id) == "dataset_name"
    return text if is_name and text is not None and re.fullmatch(r"[\w-]+/", text) else None


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _is_number(node: ast.expr) -> bool:
    """Whether it can be nothing but a number: a text or list cannot be added to it."""
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.USub)
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Sub | ast.Mult | ast.FloorDiv)
    return isinstance(node, ast.Constant) and _is_small_number(node.value)


def _is_small_number(value: Any) -> bool:
    return isinstance(value, int | float) and abs(value) <= _LARGEST_FACTOR


def _check_product(
    product: ast.BinOp, references: Mapping[str, str], definitions: Mapping[str, list[Any]]
) -> str | None:
    """What is wrong with a product: a list or text times a number, or numbers without end, fill the memory."""
    for node in ast.walk(product):
        is_factor = isinstance(node, ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop | ast.expr_context)
        if isinstance(node, ast.Constant):
            is_factor = _is_small_number(node.value)
        if isinstance(node, ast.Name):
            values = definitions.get(references.get(node.id, ""), [])
            is_factor = node.id in references and all(_is_small_number(value) or value is None for value in values)
        if not is_factor:
            return f"a product of more than numbers up to {_LARGEST_FACTOR:,} could fill the memory."
    return None
